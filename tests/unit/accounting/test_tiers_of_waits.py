"""What nobody runs takes no label value from what runs."""

from dataclasses import replace

from gputally.accounting.totals.total import Total
from gputally.accounting.waiting.blame import Blame
from gputally.model.kube.kinds import Kind
from gputally.model.rules import Limits, Rules, TierRule
from gputally.model.waits import Occupant
from tests.core.manifests import GPU_NAME, us
from tests.core.policies import quota
from tests.core.replay import Replay
from tests.unit.accounting.test_waiting import HOLDER, NODE, WAITS, charged, new_replay

BY_TEAM = Rules(tiers=(TierRule(tier="{value}", label="team"), TierRule(tier="{class}")))


def test_a_pod_that_is_relabelled_again_and_again_takes_no_tier_from_others() -> None:
    replay = Replay(opened=0, rules=BY_TEAM)
    replay.relist(Kind.NODES, NODE, at=1, since=None)
    replay.relist(Kind.PODS, at=2, since=None)
    for turn in range(40):
        replay.see(replace(WAITS, gpus=100, labels={"team": f"x{turn}"}, version=3 + turn), at=21 + turn)
        replay.scrape(21 + turn)
    replay.see(replace(HOLDER, created=70, scheduled=75, started=76), at=76)
    replay.scrape(80)

    assert {labels[0] for labels in replay.gpu_seconds(80)} == {"gold"}
    assert replay.fleet.limiter.refusals["tier"] == 0
    assert {labels[0] for labels in charged(replay, 80)} == {"other", "gold"}


def test_a_wait_is_exported_under_its_tier_as_soon_as_that_is_known() -> None:
    replay = Replay(opened=0)
    replay.relist(Kind.NODES, NODE, at=1, since=None)
    replay.relist(Kind.PODS, HOLDER, at=10, since=None)
    replay.see(WAITS, at=21)
    replay.scrape(30)
    replay.see_class({"metadata": {"name": "lead", "uid": "uid-lead"}, "value": 1}, at=40)
    for at in range(41, 120, 6):
        replay.scrape(at)

    found = {labels[0]: amount for labels, amount in charged(replay, 120).items() if labels[1] == "gold"}
    assert found["lead"] > 0
    assert sum(found.values()) == 2 * 100


def test_a_tier_with_nothing_but_waits_is_not_in_use() -> None:
    replay = Replay(opened=0)
    replay.relist(Kind.NODES, NODE, at=1, since=None)
    replay.relist(Kind.PODS, at=10, since=None)
    replay.see_class({"metadata": {"name": "lead", "uid": "uid-lead"}, "value": 1}, at=11)
    replay.see(replace(WAITS, gpus=9), at=21)

    assert charged(replay, 30)["lead", "nobody", "other"] == 9 * 10
    assert ("tier", "lead") not in replay.fleet.totals.growth()[1]


def test_tenants_with_nothing_but_quotas_take_no_room_from_others() -> None:
    replay = Replay(opened=0, rules=Rules(limits=Limits(tenants=2)))
    for number in range(3):
        name = f"q{number}"
        replay.see_namespace({"metadata": {"name": name, "uid": f"uid-{name}"}}, at=1)
    replay.relist_objects(
        Kind.QUOTAS, *(quota(f"q{number}", {GPU_NAME: 2}, namespace=f"q{number}") for number in range(3)), at=5
    )
    assert set(replay.scrape(10).quotas) == {("any", "q0"), ("any", "q1"), ("any", "other")}

    replay.relist(Kind.NODES, NODE, at=11, since=None)
    replay.see(HOLDER, at=12)
    replay.scrape(20)

    assert {labels[1] for labels in replay.gpu_seconds(20, Total.ALLOCATED)} == {"ml"}
    assert set(replay.scrape(21).quotas) == {("any", "q0"), ("any", "other")}


def test_pods_that_take_turns_change_only_the_waits_that_are_charged_to_them() -> None:
    replay = new_replay()
    replay.see_class({"metadata": {"name": "silver", "uid": "uid-silver"}, "value": 1}, at=15)
    replay.see(replace(WAITS, gpus=8), *(replace(WAITS, name=f"z{number}") for number in range(20)), at=21)
    replay.scrape(21)
    holder = HOLDER
    for turn, at in enumerate(range(22, 142, 3), start=1):
        replay.lose(holder, at=at)
        tier = ("gold", "silver")[turn % 2]
        holder = replace(HOLDER, name=f"h{turn}", tier=tier, scheduled=at, started=at)
        replay.see(holder, at=at)
        replay.scrape(at)

    waits = replay.fleet.waiting.book.known["uid-b"].waits
    tiers = [each.occupant.tier for each in waits if each.occupant]
    assert tiers[-4:] == ["silver", "gold", "silver", "gold"], "no pod is charged after its end"
    assert all(len(replay.fleet.waiting.book.known[f"uid-z{number}"].waits) == 1 for number in range(20))
    assert sum(amount for labels, amount in charged(replay, 160).items() if labels[0] == "lead") == 48 * 140


def test_an_occupant_that_still_holds_its_gpus_changes_once_a_minute_at_most() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    replay.scrape(21)
    known = replay.fleet.waiting.book.known["uid-b"]
    other = Blame(known.waits[-1].cause, Occupant("silver", "ml"), "n1", ("uid-other",))

    last = known.waits[-1]
    keeps = replay.fleet.waiting._keeps_occupant
    assert keeps(known, last, other, at_us=last.from_us + us(59) - us(0))
    assert not keeps(known, last, other, at_us=last.from_us + us(60) - us(0))


def test_the_minute_begins_with_the_occupant_whatever_else_of_the_wait_changes() -> None:
    replay = new_replay(*(replace(WAITS, name=name, gpus=6, created=10) for name in "y"))
    replay.see(replace(WAITS, gpus=6), at=21)
    replay.scrape(21)
    replay.lose(replace(WAITS, name="y", gpus=6, created=10), at=50)
    replay.scrape(51)
    known = replay.fleet.waiting.book.known["uid-b"]
    assert [(each.by_occupant, each.from_us) for each in known.waits] == [(2_000_000, us(20)), (6_000_000, us(51))]

    last = known.waits[-1]
    other = Blame(last.cause, Occupant("silver", "ml"), "n1", ("uid-other",))
    keeps = replay.fleet.waiting._keeps_occupant
    assert keeps(known, last, other, at_us=us(79))
    assert not keeps(known, last, other, at_us=us(80))


def test_another_cause_changes_the_occupant_at_once() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    replay.scrape(22)

    replay.lose(HOLDER, at=30)
    replay.see(replace(HOLDER, name="h", tier="lead", priority=1, scheduled=30, started=30), at=30)
    replay.scrape(30)

    waits = replay.fleet.waiting.book.known["uid-b"].waits
    assert [(each.cause, each.occupant and each.occupant.tier, each.from_us) for each in waits] == [
        ("capacity", "gold", us(20)),
        ("not_preemptible", "lead", us(30)),
    ]
