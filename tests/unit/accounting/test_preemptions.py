from dataclasses import replace

import pytest

from gputally.accounting.disruptions.preemptors import preemptor_of
from gputally.accounting.totals.total import Total
from gputally.model.units import GPU
from tests.core.manifests import Json, NodeForm, PodForm, as_event, preempted_event
from tests.core.replay import Replay

VICTIM_UID = "11111111-1111-1111-1111-111111111111"
BY_UID = "22222222-2222-2222-2222-222222222222"
RUNNING = PodForm(name="victim", uid=VICTIM_UID, tier="low", node="n1", scheduled=10, started=11, gpus=2)
MARKED = replace(RUNNING, marked=50, version=2)
DELETED = replace(MARKED, deleted=50, version=3)
PREEMPTOR = PodForm(name="by", uid=BY_UID, tier="high", priority=100, created=49)


def cluster(*pods: PodForm) -> Replay:
    replay = Replay()
    replay.see(NodeForm(), at=1)
    replay.see(RUNNING, *pods, at=49)
    return replay


def counted(replay: Replay, at: float) -> dict[tuple[str, ...], int]:
    """What is counted at `at`, deadlines considered."""
    replay.scrape(at)
    return replay.true(Total.PREEMPTIONS, at)


def test_a_marked_and_deleted_victim_whose_event_names_the_preemptor_is_counted_by_both_tiers() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)

    assert counted(replay, 52) == {("low", "high"): 1}


def test_a_preemption_counts_once_for_the_tenant_of_its_victim() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.scrape(120)  # long enough to count it as by an unknown pod first
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=121)
    replay.restart(at=130)
    replay.see(DELETED, at=131)
    replay.scrape(140)

    assert replay.true(Total.TENANT_PREEMPTIONS, 140) == {("low", "ml"): 1}


@pytest.mark.parametrize(
    "form", [MARKED, replace(DELETED, marked=None), replace(DELETED, mark="EvictionByEvictionAPI")]
)
def test_a_mark_without_deletion_and_a_deletion_without_mark_are_not_counted(form: PodForm) -> None:
    replay = cluster(PREEMPTOR)
    replay.see(form, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)

    assert counted(replay, 200) == {}


def test_a_mark_that_was_taken_back_makes_no_later_deletion_a_preemption() -> None:
    """The disruption controller takes it back after two minutes without a deletion."""
    replay = cluster()
    replay.see(MARKED, at=51)
    replay.see(replace(MARKED, version=3, mark_status="False"), at=171)
    replay.see(replace(RUNNING, version=4, deleted=300), at=301)

    assert counted(replay, 400) == {}


def test_an_event_alone_is_not_counted() -> None:
    """Of a pod that was only assumed to a node the scheduler sends the Event too."""
    replay = cluster(PREEMPTOR)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)

    assert counted(replay, 200) == {}


def test_a_victim_that_was_never_bound_is_not_counted() -> None:
    replay = Replay()
    replay.see(replace(DELETED, node="", scheduled=None, started=None), at=51)

    assert counted(replay, 200) == {}


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_victim_event_and_preemptor_are_paired_in_any_order(order: tuple[int, int, int]) -> None:
    replay = cluster()
    news = (
        lambda: replay.see(DELETED, at=51),
        lambda: replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51),
        lambda: replay.see(PREEMPTOR, at=51),
    )
    for i in order:
        news[i]()

    assert counted(replay, 56) == {("low", "high"): 1}


def test_repeated_news_is_counted_once() -> None:
    replay = cluster(PREEMPTOR)
    for at in (51, 52, 53):
        replay.see(DELETED, at=at)
        replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=at)
    replay.lose(replace(DELETED, phase="Failed", finished=60), at=61)

    assert counted(replay, 62) == {("low", "high"): 1}


def test_a_victim_whose_event_is_lost_is_counted_after_a_minute_as_by_unknown() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)

    assert counted(replay, 110) == {}
    assert counted(replay, 116) == {("low", "unknown"): 1}


def test_an_event_after_that_moves_the_count_and_the_counter_says_it_is_ahead() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.scrape(116)
    replay.scrape(117)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=118)
    replay.scrape(120)
    rows = {row.labels: (row.value, row.ahead) for row in replay.scrape(121).totals[Total.PREEMPTIONS] if row.value}

    assert counted(replay, 122) == {("low", "high"): 1}
    assert rows == {("low", "unknown"): (1, 1), ("low", "high"): (1, 0)}


def test_the_gpus_of_a_victim_are_counted_where_its_preemption_is() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.scrape(116)
    held = replay.true(Total.PREEMPTED, 117)

    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=118)

    assert held == {("low", "unknown"): 2 * GPU}
    assert replay.true(Total.PREEMPTED, 122) == {("low", "high"): 2 * GPU}


def test_the_next_unknown_preemptor_takes_up_what_was_ahead() -> None:
    replay = cluster(PREEMPTOR, replace(RUNNING, name="v2", uid="v2"))
    replay.see(DELETED, at=51)
    replay.scrape(116)
    replay.scrape(117)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=118)
    replay.see(replace(DELETED, name="v2", uid="v2"), at=120)
    rows = {row.labels: (row.value, row.ahead) for row in replay.scrape(186).totals[Total.PREEMPTIONS]}

    assert rows["low", "unknown"] == (1, 0)


def test_an_event_without_related_names_the_preemptor_in_its_text() -> None:
    """As kube-scheduler 1.36 writes it."""
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR, related=False), at=51)

    assert counted(replay, 52) == {("low", "high"): 1}
    preemptor = replay.preemption(VICTIM_UID).preemptor
    assert preemptor
    assert (preemptor.namespace, preemptor.name) == ("ml", "by")


@pytest.mark.parametrize(
    ("event", "uid"),
    [
        ({"message": f"Preempted by pod {BY_UID} on node n1"}, BY_UID),
        ({"message": "Preempted by a pod on node n1"}, None),
        ({"message": "Preempted by ml/by on node n1"}, None),
        ({"message": "Preempted by ml/by on node n1", "related": {"kind": "Pod", "name": "by", "uid": BY_UID}}, BY_UID),
        ({}, None),
    ],
)
def test_related_comes_before_the_text_which_may_name_nobody(event: Json, uid: str | None) -> None:
    found = preemptor_of(as_event({"metadata": {"name": "e"}} | event))

    assert (found.uid if found else None) == uid


def test_a_pod_group_that_preempts_has_the_tier_of_its_pods_and_takes_gpus_with_each_of_them() -> None:
    """As kube-scheduler 1.36 writes it: the PodGroup is `related`, and the node in the text is no node."""
    pods = [replace(PREEMPTOR, name=f"by-{i}", uid=f"by-{i}", scheduling_group="gang", priority=5) for i in range(2)]
    other = replace(PREEMPTOR, name="other", uid="other", scheduling_group="other")
    replay = cluster(*pods, other)
    replay.see(DELETED, at=51)
    replay.see_event(by_group(related=True), at=51)

    assert counted(replay, 52) == {("low", "high"): 1}
    replay.see(replace(DELETED, version=5, phase="Failed", finished=60), at=60)
    replay.see(*(replace(each, version=9, node="n1", scheduled=61) for each in (*pods, other)), at=61)
    known = replay.preemption(VICTIM_UID)
    assert known.preemptor
    assert (known.preemptor.uid, known.preemptor.kind, known.preemptor.name) == (BY_UID, "PodGroup", "gang")
    assert known.preemptor_pods == ("by-0", "by-1")
    assert known.is_permitted is None  # a group has a priority of its own


def test_a_pod_group_that_only_the_text_names_has_its_uid_and_no_tier() -> None:
    replay = cluster()
    replay.see(DELETED, at=51)
    replay.see_event(by_group(related=False), at=51)

    assert counted(replay, 116) == {("low", "unknown"): 1}
    known = replay.preemption(VICTIM_UID).preemptor
    assert known
    assert (known.uid, known.kind, known.name) == (BY_UID, "PodGroup", "")


def by_group(*, related: bool) -> Json:
    """The Event of a preemption for a PodGroup of scheduling.k8s.io."""
    event = preempted_event(RUNNING, by=PREEMPTOR, related=False)
    group = {"kind": "PodGroup", "apiVersion": "scheduling.k8s.io/v1alpha2", "namespace": "ml", "name": "gang"}
    event |= {"message": f"Preempted by podgroup {BY_UID} on node cluster"}
    return event | ({"related": group | {"uid": BY_UID}} if related else {})


def test_events_of_other_reasons_name_no_preemptor() -> None:
    """`Preempting` is the kubelet's own admission."""
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR, reason="Preempting"), at=51)

    assert counted(replay, 116) == {("low", "unknown"): 1}


def test_a_preemptor_deleted_lately_is_still_known_by_its_tier() -> None:
    replay = cluster(PREEMPTOR)
    replay.lose(PREEMPTOR, at=50)
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)

    assert counted(replay, 52) == {("low", "high"): 1}


def test_a_preemptor_nobody_saw_is_unknown_but_named() -> None:
    replay = cluster()
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)

    assert counted(replay, 116) == {("low", "unknown"): 1}
    preemptor = replay.preemption(VICTIM_UID).preemptor
    assert preemptor
    assert preemptor.name == "by"


def test_the_record_tells_when_what_happened_and_what_the_victim_held() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)
    replay.lose(replace(DELETED, phase="Failed", finished=70, version=4), at=72)
    record = replay.fleet.disrupted.preemptions.known[VICTIM_UID]
    times = [record.decided_us, record.requested_us, replay.preemption(VICTIM_UID).noticed_us, record.released_us]

    assert [(time - 1_782_864_000_000_000) // 1_000_000 for time in times if time] == [50, 50, 51, 70]
    assert (record.quantity, record.victim_tier, record.victim_tenant, record.node) == (2_000_000, "low", "ml", "n1")


def test_a_victim_deleted_by_force_is_counted() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(MARKED, at=51)
    replay.lose(MARKED, at=52)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=52)

    assert counted(replay, 53) == {("low", "high"): 1}


def test_a_preemption_is_counted_once_over_a_restart() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)
    replay.flush()
    replay.restart()
    replay.see(PREEMPTOR, DELETED, at=55)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=56)

    assert counted(replay, 200) == {("low", "high"): 1}


def test_what_becomes_of_a_counted_victim_is_counted_by_no_restart_again() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)
    replay.see(replace(DELETED, phase="Failed", finished=70, version=4), at=72)
    replay.flush()
    replay.restart()
    replay.see(PREEMPTOR, at=75)

    assert counted(replay, 200) == {("low", "high"): 1}


def test_an_event_awaited_over_a_restart_still_names_the_preemptor() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.scrape(116)
    replay.restart()
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=130)

    assert counted(replay, 131) == {("low", "high"): 1}


def test_a_victim_that_still_exists_after_hours_is_not_counted_again() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)
    replay.see(PREEMPTOR, at=9000)
    replay.see(DELETED, at=9001)

    assert counted(replay, 9200) == {("low", "high"): 1}


def test_what_is_an_hour_old_is_forgotten_once_its_victim_is_gone() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)
    replay.lose(replace(DELETED, phase="Failed", finished=60, version=4), at=61)
    replay.scrape(4000)
    replay.scrape(4010)

    assert replay.fleet.disrupted.preemptions.known == {}
    assert replay.memory.documents["victim"] == {}
    assert counted(replay, 4011) == {("low", "high"): 1}


def test_tiers_past_the_limit_are_counted_as_other() -> None:
    replay = cluster(PREEMPTOR)
    replay.fleet.limiter._limits["tier"] = 1
    replay.fleet.limiter.values["tier"].pop("high", None)  # only `low` is admitted
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)

    assert counted(replay, 52) == {("low", "other"): 1}
