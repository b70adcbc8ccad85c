"""Pods that their queue system stops: Kueue marks those that it manages itself, and suspends jobs of other kinds."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gputally.accounting.totals.total import Total
from gputally.model.disruptions import Cause
from gputally.model.kube.kinds import Kind
from gputally.model.kube.workloads import Job
from tests.core.manifests import NodeForm, PodForm, instant
from tests.core.replay import Replay

START, DELETED, END = 100, 1000, 1030
QUEUE = {"kueue.x-k8s.io/queue-name": "gpus"}
GROUP = QUEUE | {"kueue.x-k8s.io/pod-group-name": "g"}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-train", "controller": True}
POD = PodForm(name="a", tier="low", created=90, node="n1", scheduled=95, started=START, gpus=2, labels=GROUP)
LOW = "low", "ml"
RAN = 2 * (END - START)


def observed(*forms: PodForm, jobs: tuple[tuple[int, Job], ...] = ()) -> Replay:
    """Each runs, is deleted, stops and is gone; the Jobs are seen then."""
    replay = Replay()
    replay.see(NodeForm(name="n1", gpus=8), at=1)
    for form in forms:
        replay.see(replace(form, marked=None, deleted=None), at=START)
    for form in forms:
        replay.see(form, at=DELETED)
    for at, job in jobs:
        replay.see_object(Kind.JOBS, job, at=at)
    for form in forms:
        replay.lose(replace(form, phase="Failed", finished=END, exit_code=143, version=3), at=END + 1)
    replay.scrape(END + 20)
    return replay


def marked(form: PodForm, reason: str, message: str = "") -> PodForm:
    kueue = {"mark_type": "TerminationTarget", "mark": reason, "mark_message": message}
    return replace(form, marked=DELETED, deleted=DELETED, version=2, **kueue)  # type: ignore[arg-type]  # any field


def deleted(form: PodForm) -> PodForm:
    return replace(form, deleted=DELETED, version=2, owners=(OWNER,), labels=QUEUE)


def job(suspended: int | None) -> Job:
    status = "False" if suspended is None else "True"
    since = instant(1 if suspended is None else suspended)
    manifest: dict[str, Any] = {
        "metadata": {"name": "train", "namespace": "ml", "uid": "job-train", "creationTimestamp": instant(1)},
        "spec": {"template": {"spec": PodForm(gpus=2).manifest()["spec"]}},
        "status": {"conditions": [{"type": "Suspended", "status": status, "lastTransitionTime": since}]},
    }
    return msgspec.convert(manifest, Job, strict=False)


def causes(replay: Replay) -> dict[str, int]:
    return {labels[2]: value for labels, value in replay.true(Total.DISRUPTIONS, END + 20).items()}


def lost(replay: Replay) -> dict[tuple[str, ...], Any]:
    return replay.gpu_seconds(END + 20, Total.DISRUPTION_LOST)


@pytest.mark.parametrize(
    ("reason", "message", "cause"),
    [
        ("WorkloadEvictedDueToPreempted", "", Cause.QUEUE_PREEMPTION),
        (
            "WorkloadEvicted",
            "Preempted to accommodate a workload (UID: 7, JobUID: 8) due to ...",
            Cause.QUEUE_PREEMPTION,
        ),
        ("WorkloadEvictedDueToPodsReadyTimeout", "Exceeded the PodsReady timeout", Cause.QUEUE_EVICTION),
        ("WorkloadEvicted", "", Cause.QUEUE_EVICTION),
        ("WorkloadDeleted", "", Cause.DELETION),
    ],
)
def test_kueue_says_why_it_stopped_the_pods_that_it_manages_itself(reason: str, message: str, cause: Cause) -> None:
    replay = observed(*(marked(replace(POD, name=name), reason, message) for name in ("a", "b")))

    assert causes(replay) == {cause.value: 2}
    assert lost(replay) == ({} if cause is Cause.DELETION else {(*LOW, cause.value): 2 * RAN})
    is_preemption = cause is Cause.QUEUE_PREEMPTION
    assert replay.gpu_seconds(END + 20, Total.LOST) == ({(*LOW, "start"): 2 * RAN} if is_preemption else {})
    assert replay.true(Total.PREEMPTIONS, END + 20) == {}


def test_a_job_in_a_queue_that_is_suspended_was_evicted_by_it() -> None:
    replay = observed(deleted(POD), jobs=((20, job(None)), (DELETED + 1, job(DELETED + 1))))

    assert causes(replay) == {"queue_eviction": 1}
    assert lost(replay) == {(*LOW, "queue_eviction"): RAN}


@pytest.mark.parametrize(
    ("form", "suspended"),
    [
        (deleted(POD), None),
        (deleted(POD), DELETED - 60),  # before, and resumed since
        (replace(deleted(POD), labels={}), DELETED),  # whoever suspends it: no queue does
    ],
)
def test_other_deletions_of_pods_of_a_job_are_deletions(form: PodForm, suspended: int | None) -> None:
    replay = observed(form, jobs=((20, job(suspended)),))

    assert causes(replay) == {"deletion": 1}
    assert lost(replay) == {}


def test_a_job_that_its_queue_stops_since_a_preempted_pod_is_missing_lost_all_work_to_the_preemption() -> None:
    labels = QUEUE | {"batch.kubernetes.io/job-name": "train", "batch.kubernetes.io/controller-uid": "job-train"}
    others = replace(deleted(POD), name="b", labels=labels)
    victim = replace(deleted(POD), labels=labels, marked=DELETED)
    replay = observed(victim, others, jobs=((DELETED + 1, job(DELETED + 1)),))

    assert causes(replay) == {"preemption": 1, "deletion": 1}
    assert lost(replay) == {(*LOW, "preemption"): 2 * RAN}
    assert replay.gpu_seconds(END + 20, Total.LOST) == {(*LOW, "start"): 2 * RAN}
