"""What the limits make of tenants that wait, hold, idle, give way and come back."""

import pytest

from gputally.accounting.fleet.snapshot import Snapshot, publish
from gputally.accounting.totals.total import Total
from gputally.model.rules import Limits, Rules, TenantRule, TenantSource
from gputally.model.units import GPU_SECOND
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay

HOUR = 3600
DAY = 24 * HOUR


def cluster(*, tenants: int, zero: float = 0) -> Replay:
    """A node of eight GPUs, tenants by label, room for so many of them."""
    by_label = (TenantRule(source=TenantSource.POD_LABEL, key="team"),)
    replay = Replay(rules=Rules(tenants=by_label, limits=Limits(tenants=tenants)), zero=zero)
    replay.see(NodeForm(capacity={"nvidia.com/gpu": 8}), at=0)
    return replay


def pod(name: str, team: str, at: int, **form: object) -> PodForm:
    """It runs from `at` on."""
    bound = PodForm(name=name, created=at, labels={"team": team}, node="n1", scheduled=at, started=at)
    return PodForm(**{**vars(bound), **form})


def waiting(name: str, team: str, at: int) -> PodForm:
    return PodForm(name=name, created=at, labels={"team": team})


def shown(snapshot: Snapshot) -> dict[str, float]:
    """GPU-seconds by exported tenant."""
    found: dict[str, float] = {}
    for labels, value, *_ in snapshot.totals[Total.ALLOCATED]:
        found[labels[1]] = found.get(labels[1], 0) + value / GPU_SECOND
    return found


def run(replay: Replay, name: str, team: str, since: int, until: int) -> None:
    """A whole life, told as it happens."""
    replay.see(pod(name, team, since), at=since)
    replay.lose(pod(name, team, since, phase="Succeeded", finished=until), at=until)
    replay.fleet.advance(us(until + 60))


def test_five_hundred_pods_that_wait_take_no_room_from_a_tenant_that_holds_gpus() -> None:
    replay = cluster(tenants=500)
    for number in range(500):
        junk = waiting(f"junk-{number}", f"junk-{number}", 10)
        replay.see(junk, at=10)
        replay.lose(junk, at=12)
    replay.see(pod("a", "research", 20), at=20)

    assert shown(replay.scrape(30)) == {"research": 10}
    assert replay.fleet.limiter.refusals["tenant"] == 0


def test_tenants_that_wait_are_named_as_long_as_there_is_room() -> None:
    replay = cluster(tenants=2)
    replay.see(pod("a", "research", 20), at=20)
    replay.see(waiting("b", "late", 22), waiting("c", "early", 21), at=25)

    assert {tenant for _, tenant in replay.scrape(30).waiting} == {"early", "other"}


def test_namespaces_of_yesterday_give_way_and_today_is_named() -> None:
    replay = cluster(tenants=500)
    for number in range(500):
        run(replay, f"ci-{number}", f"ci-{number}", 10, 20)
    run(replay, "early", "research", HOUR, HOUR + 10)
    run(replay, "late", "research", 2 * DAY, 2 * DAY + 10)

    found = shown(replay.scrape(2 * DAY + 20))

    assert (found["research"], found["other"]) == (10, 10)
    assert sum(tenant.startswith("ci-") for tenant in found) == 499


def test_a_tenant_that_comes_back_goes_on_where_its_series_left_for_every_reader() -> None:
    replay = cluster(tenants=1, zero=120)
    run(replay, "first", "a", 10, 110)
    before = shown(replay.scrape(200))
    run(replay, "second", "b", 2 * DAY, 2 * DAY + 50)
    away = shown(replay.scrape(2 * DAY + 200))
    replay.see(pod("third", "a", 4 * DAY), at=4 * DAY)
    back = [shown(replay.scrape(4 * DAY + after)) for after in (1, 119, 121)]

    assert before == {"a": 100}
    assert away == {"b": 50}
    assert back == [{"a": 100}, {"a": 100}, {"a": 221}]
    assert replay.scrape(5 * DAY).differences == {"allocated": 0, "capacity": 0}


def test_it_goes_on_there_after_a_restart_too() -> None:
    replay = cluster(tenants=1)
    run(replay, "first", "a", 10, 110)
    replay.scrape(200)
    run(replay, "second", "b", 2 * DAY, 2 * DAY + 50)
    replay.scrape(2 * DAY + 200)
    replay.restart()

    assert shown(replay.scrape(2 * DAY + 300)) == {"b": 50}
    replay.see(pod("third", "a", 4 * DAY), at=4 * DAY)
    assert shown(replay.scrape(4 * DAY + 10)) == {"a": 110}


def test_late_news_of_a_tenant_that_gave_way_goes_to_its_own_series() -> None:
    replay = cluster(tenants=1)
    run(replay, "first", "a", 10, 110)
    replay.scrape(200)
    run(replay, "second", "b", 2 * DAY, 2 * DAY + 50)
    replay.scrape(2 * DAY + 200)
    late_us = 2 * DAY * 1_000_000
    [labels] = [labels for _, labels in replay.fleet.totals.series if labels[1:2] == ("a",) and labels[-1] == "running"]
    replay.fleet.totals.accrue(Total.ALLOCATED, labels, 1_000_000, (us(110), us(141)), at_us=late_us)

    assert shown(publish(replay.fleet, now_us=us(3 * DAY), ledger={})) == {"b": 50}
    run(replay, "third", "a", 4 * DAY, 4 * DAY + 10)
    assert shown(publish(replay.fleet, now_us=us(4 * DAY + 20), ledger={})) == {"a": 141}


def test_what_runs_as_other_goes_on_under_its_name_once_there_is_room_and_keeps_its_past() -> None:
    replay = cluster(tenants=1)
    run(replay, "first", "a", 10, 110)
    replay.see(pod("long", "b", 200), at=200)
    day_two = 2 * DAY
    for at in (200 + HOUR, day_two):
        replay.fleet.advance(us(at))

    found = shown(replay.scrape(day_two + 100))

    assert found == {"other": day_two - 200, "b": 100}
    assert [segment.labels[1] for segment in replay.segments("long")] == ["other", "b"]


def busy_again(*, tenants: int = 1) -> Replay:
    """Tenant `a` is back after two days of rest, and no look has told so yet when `b` comes 20 s later."""
    replay = cluster(tenants=tenants)
    run(replay, "first", "a", 10, 110)
    replay.scrape(200)
    replay.fleet.advance(us(2 * DAY))
    replay.see(pod("second", "a", 2 * DAY + 10), at=2 * DAY + 10)
    return replay


def test_a_tenant_that_holds_gpus_again_does_not_give_way_before_that_is_noticed() -> None:
    replay = busy_again()
    replay.see(pod("third", "b", 2 * DAY + 30), at=2 * DAY + 30)

    assert shown(replay.scrape(2 * DAY + 110)) == {"a": 200, "other": 80}


def test_nor_after_a_restart_meanwhile() -> None:
    replay = busy_again()
    replay.flush()
    replay.restart()
    replay.see(pod("third", "b", 2 * DAY + 30), at=2 * DAY + 30)

    assert shown(replay.scrape(2 * DAY + 110)) == {"a": 200, "other": 80}


def test_a_tenant_that_came_back_keeps_its_room_though_nobody_scrapes() -> None:
    replay = cluster(tenants=1)
    run(replay, "first", "a", 10, 110)
    replay.scrape(200)
    run(replay, "second", "b", 2 * DAY, 2 * DAY + 50)
    replay.scrape(2 * DAY + 200)
    replay.see(pod("third", "a", 4 * DAY), at=4 * DAY)
    for minute in range(1, 10):
        replay.fleet.advance(us(4 * DAY + 60 * minute))
    replay.see(pod("fourth", "c", 4 * DAY + 600), at=4 * DAY + 600)

    assert shown(replay.scrape(4 * DAY + 700)) == {"a": 800, "other": 100}


@pytest.mark.parametrize("namespace", ["ml", "unheard-of"])
def test_a_pod_that_holds_gpus_again_after_its_tenant_rested_is_seen(namespace: str) -> None:
    """Its kubelet took it up after days; of a namespace that is not known no labels are read anew."""
    replay = cluster(tenants=1)
    replay.see(pod("late", "a", 10, started=None, namespace=namespace), at=10)
    for at in (60, 1000, 2000, 2 * DAY):
        replay.scrape(at)
    replay.see(pod("late", "a", 10, namespace=namespace, started=2 * DAY + 10, version=2), at=2 * DAY + 10)
    replay.see(pod("third", "b", 2 * DAY + 30), at=2 * DAY + 30)
    before = shown(replay.scrape(2 * DAY + 110))
    after = shown(replay.scrape(2 * DAY + 210))

    assert before["a"] > 0
    assert {tenant: after[tenant] - before[tenant] for tenant in after} == {"a": 100, "other": 100}


def test_and_as_other_if_its_tenant_gave_way() -> None:
    replay = cluster(tenants=1)
    replay.see(pod("late", "a", 10, started=None, namespace="unheard-of"), at=10)
    for at in (60, 1000, 2000, 2 * DAY):
        replay.scrape(at)
    replay.see(pod("third", "b", 2 * DAY + 10), at=2 * DAY + 10)
    replay.see(pod("late", "a", 10, namespace="unheard-of", started=2 * DAY + 30, version=2), at=2 * DAY + 30)
    before = shown(replay.scrape(2 * DAY + 110))
    after = shown(replay.scrape(2 * DAY + 210))

    assert {tenant: after[tenant] - before[tenant] for tenant in after} == {"b": 100, "other": 100}


def test_what_is_forgotten_of_a_pool_keeps_its_state() -> None:
    replay = Replay(rules=Rules(limits=Limits(pools=1)))
    for number in range(8):
        at = 10 + 2 * DAY * number
        name = f"n{number}"
        node = NodeForm(name=name, created=at, labels={"agentpool": name}, capacity={"nvidia.com/gpu": 8})
        replay.see(node, at=at)
        replay.see(pod(name, "", at, node=name), at=at)
        replay.lose(pod(name, "", at, node=name, phase="Succeeded", finished=at + 100), at=at + 100)
        replay.lose(node, at=at + 200)
        for later in (300, 400, 2 * DAY - 10):
            replay.scrape(at + later)

    assert replay.capacity(20 * DAY) == {"allocated": 800, "free": 8 * 8 * 200 - 800}
    assert replay.scrape(20 * DAY).differences == {"allocated": 0, "capacity": 0}


def test_a_year_of_new_tenants_costs_no_more_than_five_times_the_limit() -> None:
    replay = cluster(tenants=10)
    for day in range(1, 60):
        for number in range(10):
            run(replay, f"ci-{day}-{number}", f"ci-{day}-{number}", day * 2 * DAY, day * 2 * DAY + 10)
        replay.fleet.advance(us(day * 2 * DAY + HOUR))
    snapshot = replay.scrape(200 * DAY)

    tenants = {labels[1] for total, labels in replay.memory.series if total is Total.ALLOCATED}
    assert len(tenants) == 10 + 4 * 10 + 1  # and what remains of all others
    assert len(replay.memory.known_values) <= 60
    assert snapshot.differences == {"allocated": 0, "capacity": 0}
    assert sum(series.at(0) for _, series in replay.fleet.totals.truth(Total.ALLOCATED)) == 5900 * GPU_SECOND
