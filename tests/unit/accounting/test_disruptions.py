"""Why a pod lost its GPUs: each cause, from the objects of the pod and its node."""

from dataclasses import replace

import pytest
from msgspec import structs

from gputally.accounting.totals.total import Total
from gputally.model.disruptions import Cause, Victim
from gputally.model.units import US_PER_SECOND
from tests.core.manifests import Json, NodeForm, PodForm, as_pod, instant, us
from tests.core.replay import Replay

OWNER: Json = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train", "controller": True}
RUNNING = PodForm(name="victim", uid="victim", tier="low", node="n1", scheduled=10, started=11, owners=(OWNER,))
NODE = NodeForm()
SPOT = NodeForm(labels={"karpenter.sh/capacity-type": "spot"})
KUBELET = "TerminationByKubelet"


def marked(reason: str, *, grace: int = 30) -> PodForm:
    """The pod after the deletion request that follows the condition."""
    return replace(RUNNING, marked=50, mark=reason, deleted=50, grace=grace, version=2)


def ended(form: PodForm, at: int, *, exit_code: int = 143) -> PodForm:
    """The same pod after its container ended."""
    return replace(form, finished=at, exit_code=exit_code, phase="Failed" if exit_code else "Succeeded", version=3)


def ended_by_kubelet(reason: str) -> PodForm:
    return replace(
        RUNNING, marked=50, mark=KUBELET, phase="Failed", reason=reason, finished=55, exit_code=137, version=2
    )


def observed(*forms: PodForm, node: NodeForm = NODE, at: float = 60) -> Replay:
    replay = Replay()
    replay.see(node, at=1)
    replay.see(RUNNING, at=20)
    replay.see(*forms, at=at)
    return replay


def found(replay: Replay) -> Victim | None:
    return replay.fleet.disrupted.victims.known.get("victim")


def counted(replay: Replay) -> dict[str, int]:
    """Disruptions by cause."""
    return {labels[2]: value for labels, value in replay.true(Total.DISRUPTIONS, 1000).items()}


@pytest.mark.parametrize(
    ("form", "cause"),
    [
        (marked("PreemptionByScheduler"), Cause.PREEMPTION),
        (marked("DeletionByTaintManager"), Cause.TAINT),
        (marked("DeletionByDeviceTaintManager"), Cause.DEVICE_TAINT),
        (marked("EvictionByEvictionAPI"), Cause.EVICTION),
        (marked("DeletionByPodGC"), Cause.NODE_LOST),
        (marked("MyOwnScheduler"), Cause.OTHER),
        (ended_by_kubelet("Evicted"), Cause.NODE_PRESSURE),
        (ended_by_kubelet("Terminated"), Cause.NODE_SHUTDOWN),
        (ended_by_kubelet("Preempting"), Cause.KUBELET_ADMISSION),
        (ended(replace(RUNNING, deleted=50), 55), Cause.DELETION),
    ],
)
def test_the_object_of_the_pod_says_the_cause(form: PodForm, cause: Cause) -> None:
    replay = observed(form)

    assert counted(replay) == {cause.value: 1}


@pytest.mark.parametrize(
    "form",
    [
        ended(RUNNING, 40, exit_code=0),
        ended(RUNNING, 40, exit_code=1),
        replace(RUNNING, marked=50, mark="EvictionByEvictionAPI", version=2),
        replace(RUNNING, marked=50, mark="EvictionByEvictionAPI", mark_status="False", deleted=50, version=2),
    ],
    ids=["succeeded", "failed", "mark without deletion", "mark withdrawn, deletion goes on"],
)
def test_a_pod_that_goes_on_or_ended_by_itself_is_not_disrupted(form: PodForm) -> None:
    assert counted(observed(form)) == {}


def test_a_finished_pod_that_is_drained_later_was_not_disrupted() -> None:
    replay = observed(ended(RUNNING, 40, exit_code=0))
    replay.see(ended(marked("EvictionByEvictionAPI"), 40, exit_code=0), at=61)

    assert counted(replay) == {}


def test_a_deletion_is_no_disruption_if_a_late_event_shows_that_the_pod_had_succeeded() -> None:
    replay = observed(ended(replace(RUNNING, deleted=50), 49, exit_code=0))
    assert counted(replay) == {"deletion": 1}
    replay.flush()

    replay.see(ended(RUNNING, 49, exit_code=0), at=61)

    assert counted(replay) == {}
    assert found(replay) is None


def test_what_podgc_writes_after_the_request_does_not_change_the_cause() -> None:
    replay = observed(marked("EvictionByEvictionAPI"))
    replay.see(replace(marked("DeletionByPodGC"), marked=90, version=3), at=91)

    assert counted(replay) == {"eviction": 1}


def test_a_mark_later_than_a_users_deletion_is_not_the_cause() -> None:
    replay = observed(replace(RUNNING, deleted=30, grace=300, version=2), at=31)
    replay.see(ended(replace(marked("EvictionByEvictionAPI"), deleted=30, grace=300), 55), at=60)

    assert counted(replay) == {"deletion": 1}


RECLAIM_TAINT: Json = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
OTHER_TAINT: Json = {"key": "aws-node-termination-handler/rebalance-recommendation", "effect": "NoSchedule"}
SCALE_DOWN_TAINT: Json = {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}
AKS: Json = {
    "type": "PreemptionScheduled",
    "status": "True",
    "reason": "SpotEvictionIncoming",
    "lastTransitionTime": instant(45),
}


@pytest.mark.parametrize(
    ("node", "form", "cause", "is_certain"),
    [
        (replace(SPOT, taints=(RECLAIM_TAINT,)), marked("EvictionByEvictionAPI"), Cause.SPOT_RECLAIM, True),
        (replace(SPOT, conditions=(AKS,)), ended_by_kubelet("Terminated"), Cause.SPOT_RECLAIM, True),
        (SPOT, ended_by_kubelet("Terminated"), Cause.SPOT_RECLAIM, False),
        (SPOT, marked("DeletionByPodGC"), Cause.NODE_LOST, False),
        (SPOT, marked("EvictionByEvictionAPI"), Cause.EVICTION, True),
        (replace(SPOT, taints=(OTHER_TAINT,)), marked("EvictionByEvictionAPI"), Cause.EVICTION, True),
        (replace(NODE, taints=(SCALE_DOWN_TAINT,)), marked("EvictionByEvictionAPI"), Cause.SCALE_DOWN, True),
        (replace(SPOT, taints=(RECLAIM_TAINT,)), marked("PreemptionByScheduler"), Cause.PREEMPTION, True),
        (NODE, ended_by_kubelet("Terminated"), Cause.NODE_SHUTDOWN, True),
    ],
)
def test_a_node_shows_whether_its_machine_was_taken_away(
    node: NodeForm, form: PodForm, cause: Cause, *, is_certain: bool
) -> None:
    replay = observed(node=replace(node, taints=(), conditions=()))
    replay.see(replace(node, version=2), at=46)
    replay.see(form, at=60)

    each = found(replay)
    assert each is not None
    assert (each.cause, each.is_certain) == (cause, is_certain)
    assert counted(replay) == {cause.value: 1}


def test_a_signal_that_is_observed_after_the_eviction_corrects_the_count() -> None:
    replay = observed(marked("EvictionByEvictionAPI"), node=SPOT)
    assert counted(replay) == {"eviction": 1}

    replay.see(replace(SPOT, conditions=(AKS,), version=2), at=62)

    assert counted(replay) == {"spot_reclaim": 1}


def test_a_signal_after_the_end_of_the_pod_is_not_its_cause() -> None:
    replay = observed(ended(marked("EvictionByEvictionAPI"), 55), node=SPOT)
    replay.see(replace(SPOT, taints=(RECLAIM_TAINT,), version=2), at=70)

    assert counted(replay) == {"eviction": 1}


def test_signals_and_disruptions_survive_a_restart_and_count_once() -> None:
    replay = observed(node=SPOT)
    replay.see(replace(SPOT, taints=(RECLAIM_TAINT,), version=2), at=40)
    replay.flush()
    replay.restart(at=45)
    replay.see(replace(SPOT, version=3), at=46)
    replay.see(marked("EvictionByEvictionAPI"), at=60)
    replay.flush()
    replay.restart(at=65)
    replay.lose(ended(marked("EvictionByEvictionAPI"), 66), at=67)

    assert counted(replay) == {"spot_reclaim": 1}


def steps(replay: Replay) -> dict[str, int]:
    """The duration of each step in seconds."""
    return {labels[0]: us_ // US_PER_SECOND for labels, us_ in replay.true(Total.PREEMPTION_STEP_TIME, 1000).items()}


def test_the_steps_of_a_preemption_until_its_replacement_runs() -> None:
    replay = observed(marked("PreemptionByScheduler"))
    replay.lose(ended(marked("PreemptionByScheduler"), 77), at=78)
    replay.see(PodForm(name="by", tier="high", created=49, node="n1", scheduled=79, started=81), at=82)
    replay.see(PodForm(name="again", created=51, node="n2", scheduled=95, started=110, owners=(OWNER,)), at=111)

    each = found(replay)
    assert each is not None
    assert (each.stopped_us, each.released_us, each.reused_us) == (us(77), us(77), us(79))
    assert (each.replaced_us, each.replacement_uid) == (us(110), "uid-again")
    assert steps(replay) == {"stop": 27, "reuse": 2, "replace": 60}
    assert set(replay.true(Total.PREEMPTION_STEPS, 1000)) == {
        ("request", "1"),
        ("stop", "30"),
        ("reuse", "2"),
        ("replace", "60"),
    }


def test_two_victims_of_a_job_have_different_replacements() -> None:
    other = replace(RUNNING, name="other", uid="other")
    replay = observed(other)
    victims = [ended(replace(each, marked=50, deleted=50), 55) for each in (RUNNING, other)]
    replay.see(*victims, at=56)
    for name, at in (("first", 70), ("second", 80)):
        replay.see(PodForm(name=name, created=57, node="n2", scheduled=60, started=at, owners=(OWNER,)), at=at + 1)

    known = replay.fleet.disrupted.victims.known
    assert {each.replacement_uid for each in known.values()} == {"uid-first", "uid-second"}


def test_a_pod_created_before_the_preemption_replaces_nobody() -> None:
    replay = observed(ended(marked("PreemptionByScheduler"), 55))
    replay.see(PodForm(name="sibling", created=5, node="n2", scheduled=10, started=58, owners=(OWNER,)), at=59)

    each = found(replay)
    assert each is not None
    assert each.replacement_uid == ""


@pytest.mark.parametrize(("finished", "exceeded"), [(78, 0), (82, 0), (83, 1), (300, 1)])
def test_a_victim_that_ignores_sigterm_exceeds_its_grace_period(finished: int, exceeded: int) -> None:
    replay = observed(marked("PreemptionByScheduler"), at=51)
    replay.see(ended(marked("PreemptionByScheduler"), finished, exit_code=137), at=finished + 1)
    replay.lose(replace(ended(marked("PreemptionByScheduler", grace=0), finished), deleted=finished), at=finished + 1)

    each = found(replay)
    assert each is not None
    assert each.grace_us == 30 * US_PER_SECOND
    assert each.grace_exceeded_us == max(0, finished - 80) * US_PER_SECOND
    assert sum(replay.true(Total.GRACE_EXCEEDED, 1000).values()) == exceeded


def test_a_rejected_pod_had_no_gpus_to_lose() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    rejected = PodForm(
        name="victim", uid="victim", node="n1", scheduled=10, phase="Failed", reason="OutOfnvidia.com/gpu", marked=12
    )
    replay.see(rejected, at=12)

    assert counted(replay) == {}


def test_disruptions_are_forgotten_an_hour_after_the_pod() -> None:
    replay = observed(ended(marked("EvictionByEvictionAPI"), 55))
    replay.lose(ended(marked("EvictionByEvictionAPI"), 55), at=61)
    replay.scrape(3600)
    assert found(replay) is not None

    replay.scrape(3700)

    assert found(replay) is None
    assert counted(replay) == {"eviction": 1}


def test_a_grace_period_of_63_bits_fits_into_the_ledger() -> None:
    replay = observed(marked("EvictionByEvictionAPI"))
    pod = as_pod(ended(marked("EvictionByEvictionAPI"), 55))
    meta = structs.replace(pod.metadata, deletion_grace_period_seconds=2**62)
    replay.see_pod(structs.replace(pod, metadata=meta), at=56)

    each = found(replay)
    assert each is not None
    assert (each.grace_us or 0) < 2**63


def test_a_disruption_still_counts_after_the_clock_was_set_back() -> None:
    replay = observed(ended(marked("EvictionByEvictionAPI"), 55))
    replay.scrape(60)
    replay.restart(at=30)
    replay.see(replace(ended(marked("EvictionByEvictionAPI"), 55), version=4), at=31)

    assert counted(replay) == {"eviction": 1}


def test_most_pods_of_a_large_job_are_no_candidates_for_a_replacement() -> None:
    early = replace(RUNNING, name="early", uid="early")
    replay = observed(early, ended(marked("PreemptionByScheduler"), 55))
    replay.see(ended(replace(early, marked=40, deleted=40), 58), at=59)
    replay.see(PodForm(name="new", created=45, node="n2", scheduled=60, started=62, owners=(OWNER,)), at=63)

    known = replay.fleet.disrupted.victims.known
    assert {uid: each.replacement_uid for uid, each in known.items()} == {"victim": "", "early": "uid-new"}
