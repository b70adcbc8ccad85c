"""KAI-Scheduler marks whatever it evicts as preempted; only its message says why, and for which PodGroup.

Texts: kai-scheduler/KAI-Scheduler pkg/scheduler/api/unschedule_info.go, from v0.5 on.
"""

from dataclasses import replace

import pytest

from gputally.accounting.disruptions import preemptors
from gputally.accounting.disruptions.preemptors import GroupPreemptors, as_group
from gputally.accounting.totals.total import Total
from gputally.frameworks.kai import KaiEviction, kai_eviction_in
from gputally.model.disruptions import Cause, Preemptor, Victim
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Replay

PREEMPT = "Pod ml/a was preempted by higher priority workload serving/pg-llama-0c1f"
RECLAIM = """Pod ml/a was preempted by workload serving/pg-llama-0c1f.
research uses <CPU: 8 (cores), memory: 64 (GB), GPUs: 4> with a quota of <GPUs: 2>, fair-share of <GPUs: 2> and \
queue priority of <100>.
serving uses <CPU: 0 (cores), memory: 0 (GB), GPUs: 0> with a quota of <GPUs: 2>, fair-share of <GPUs: 2> and \
queue priority of <100>."""
CONSOLIDATE = "Pod ml/a was preempted and rescheduled due to bin packing (resource consolidation) procedure"
STALE = "Workload doesn't meet the minimum required number of pods (2), evicting remaining pod: ml/a"
STALE_BEFORE = "Workload doesn't have the minimum required number of pods (2), evicting remaining pod: ml/a"
KUBE_SCHEDULER = "default-scheduler: preempting to accommodate a higher priority pod"

RUNNING = PodForm(name="a", tier="low", priority=50, node="n1", scheduled=10, started=11, gpus=2)
GROUP = PodForm(
    name="llama-0",
    namespace="serving",
    tier="high",
    priority=10,  # KAI compares the priorities of workloads
    created=40,
    annotations={"pod-group-name": "pg-llama-0c1f"},
)
NAMED = Preemptor(uid="", namespace="serving", name="pg-llama-0c1f", kind="PodGroup", quantity=None)


def evicted(message: str, *waiting: PodForm) -> Replay:
    replay = Replay()
    replay.see(NodeForm(), at=1)
    replay.see(RUNNING, *waiting, at=49)
    victim = replace(RUNNING, version=2, marked=50, mark_message=message, deleted=50)
    replay.see(victim, at=50)
    ended = replace(victim, version=3, phase="Failed", finished=60, exit_code=143)
    replay.see(ended, at=60)
    replay.lose(ended, at=61)
    replay.scrape(70)
    return replay


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (PREEMPT, KaiEviction(Cause.PREEMPTION, "serving", "pg-llama-0c1f")),
        (RECLAIM, KaiEviction(Cause.PREEMPTION, "serving", "pg-llama-0c1f")),
        ("Pod a/b was preempted by workload c/d.e.", KaiEviction(Cause.PREEMPTION, "c", "d.e")),
        (CONSOLIDATE, KaiEviction(Cause.CONSOLIDATION)),
        (STALE, KaiEviction(Cause.QUEUE_EVICTION)),
        (STALE_BEFORE, KaiEviction(Cause.QUEUE_EVICTION)),
        (KUBE_SCHEDULER, None),
        (None, None),
        ("Pod a/b was preempted by workload ../..", None),
        (f"Pod a/b was preempted by workload c/{'d' * 300}", None),
        ("Pod a/b was preempted by workload c/d and more", None),
    ],
)
def test_the_message_says_why_and_for_which_workload(message: str | None, found: KaiEviction | None) -> None:
    assert kai_eviction_in(message) == found


@pytest.mark.parametrize("message", [PREEMPT, RECLAIM])
def test_a_preemption_is_for_the_workload_that_the_message_names_with_the_tier_of_its_pods(message: str) -> None:
    replay = evicted(message, GROUP)

    known = replay.preemption("uid-a")
    assert replay.true(Total.PREEMPTIONS, 71) == {("low", "high"): 1}
    assert replay.true(Total.DISRUPTIONS, 71) == {("low", "ml", "preemption"): 1}
    assert known.preemptor == replace_tier(NAMED, "high", "serving")
    assert known.is_permitted is None  # by KAI's own rules


def replace_tier(by: Preemptor, tier: str, tenant: str) -> Preemptor:
    return Preemptor(
        uid=by.uid,
        namespace=by.namespace,
        name=by.name,
        kind=by.kind,
        quantity=None,
        tier=tier,
        tenant=tenant,
        class_name=tier,
    )


def test_a_workload_of_which_no_pod_is_known_is_named_and_its_tier_is_unknown() -> None:
    replay = evicted(PREEMPT)
    replay.scrape(140)

    assert replay.preemption("uid-a").preemptor == NAMED
    assert replay.true(Total.PREEMPTIONS, 141) == {("low", "unknown"): 1}


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (CONSOLIDATE, Cause.CONSOLIDATION),
        (STALE, Cause.QUEUE_EVICTION),
        (STALE_BEFORE, Cause.QUEUE_EVICTION),
        (KUBE_SCHEDULER, Cause.PREEMPTION),
    ],
)
def test_what_made_room_for_nobody_is_no_preemption(message: str, cause: Cause) -> None:
    replay = evicted(message, GROUP)
    replay.scrape(140)

    found = replay.memory.history["victims"]["uid-a"]
    assert isinstance(found, Victim)
    assert (found.cause, found.decided_us) == (cause, found.requested_us)
    is_preemption = cause is Cause.PREEMPTION
    assert replay.true(Total.DISRUPTIONS, 141) == {("low", "ml", cause.value): 1}
    assert replay.true(Total.PREEMPTIONS, 141) == ({("low", "unknown"): 1} if is_preemption else {})
    lost = {labels[2]: value for labels, value in replay.gpu_seconds(141, Total.DISRUPTION_LOST).items()}
    assert lost == {cause.value: 2 * 49}
    assert bool(replay.gpu_seconds(141, Total.LOST)) == is_preemption


def test_a_restarted_aggregator_reads_the_workload_from_the_victim_again() -> None:
    replay = Replay()
    replay.see(NodeForm(), at=1)
    victim = replace(RUNNING, version=2, marked=50, mark_message=PREEMPT, deleted=50)
    replay.see(RUNNING, GROUP, at=49)
    replay.flush()
    replay.see(victim, at=50)
    replay.restart()
    replay.see(GROUP, victim, at=52)

    replay.scrape(60)
    assert replay.true(Total.PREEMPTIONS, 61) == {("low", "high"): 1}


def test_a_namespace_with_many_groups_loses_its_own_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemptors, "MOST_GROUPS", 3)
    groups = GroupPreemptors()
    for namespace, name in (("serving", "pg"), ("ml", "a"), ("ml", "b"), ("ml", "a"), ("ml", "c")):
        groups.seen(namespace, name, Preemptor(uid="u", namespace="", name="", tier="high"))

    known = [("serving", "pg"), ("ml", "a"), ("ml", "b"), ("ml", "c")]
    found = {name: groups.get(as_group(namespace=namespace, name=name)).tier for namespace, name in known}
    assert found == {"pg": "high", "a": "high", "b": "", "c": "high"}


def test_a_namespace_that_has_lost_its_only_group_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemptors, "MOST_GROUPS", 1)
    groups = GroupPreemptors()
    for number in range(20):
        groups.seen(f"team-{number}", "pg", Preemptor(uid="u", namespace="", name="", tier="high"))

    assert list(groups._pods) == ["team-19"]
