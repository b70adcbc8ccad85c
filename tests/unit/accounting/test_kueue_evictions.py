"""Evictions that only a Workload of Kueue reports: those of jobs that it suspends."""

from dataclasses import replace

import pytest

from gputally.accounting.disruptions.kueue_workload_names import PodWorkloads
from gputally.accounting.jobs.checkpoints import LAST_CHECKPOINT
from gputally.accounting.totals.total import Total
from gputally.frameworks.kueue import KueueWorkload
from gputally.model.kube.kinds import Kind
from gputally.model.rules import Rules
from tests.core.kueue import PYTORCH, evicted, kueue_workload
from tests.core.manifests import Json, NodeForm, PodForm, instant
from tests.core.replay import Replay

START, EVICTED, DELETED, END, LATER = 100, 999, 1000, 1030, 1060
LABELS = {"training.kubeflow.org/job-name": "train"}
POD = PodForm(
    name="a",
    tier="low",
    created=90,
    node="n1",
    scheduled=95,
    started=START,
    gpus=2,
    owners=(PYTORCH,),
    labels=LABELS,
)
WORKLOADS = Kind.KUEUE_WORKLOADS
RAN = 2 * (END - START)


def running(*forms: PodForm) -> Replay:
    replay = Replay(rules=Rules(watched=(WORKLOADS,)))
    replay.see(NodeForm(name="n1", gpus=8), at=1)
    for form in forms or (POD,):
        replay.see(form, at=START)
    return replay


def stop(replay: Replay, *forms: PodForm, at: int = DELETED, end: int = END) -> None:
    """The pods are deleted, stop within 30 s and are gone."""
    for form in forms or (POD,):
        replay.see(replace(form, deleted=at, version=2), at=at)
    for form in forms or (POD,):
        last = replace(form, deleted=at, phase="Failed", finished=end, exit_code=143, version=3)
        replay.lose(last, at=end + 1)


def says(replay: Replay, workload: KueueWorkload, *, at: float) -> None:
    replay.see_object(WORKLOADS, workload, at=at)


def causes(replay: Replay, at: float = LATER) -> dict[str, int]:
    replay.scrape(at)
    return {labels[2]: value for labels, value in replay.true(Total.DISRUPTIONS, at).items() if value}


@pytest.mark.parametrize(
    ("reason", "cause"), [("Preempted", "queue_preemption"), ("PodsReadyTimeout", "queue_eviction")]
)
@pytest.mark.parametrize("order", ["before", "between", "after"])
def test_the_pods_of_an_evicted_job_lost_their_work_to_its_queue(reason: str, cause: str, order: str) -> None:
    replay, workload = running(), kueue_workload(evicted(EVICTED, reason=reason))
    if order == "before":
        says(replay, workload, at=EVICTED)
    replay.see(replace(POD, deleted=DELETED, version=2), at=DELETED)
    if order == "between":
        says(replay, workload, at=DELETED + 1)
    stop(replay)
    if order == "after":
        says(replay, workload, at=END + 2)

    assert causes(replay) == {cause: 1}
    assert replay.gpu_seconds(LATER, Total.DISRUPTION_LOST) == {("low", "ml", cause): RAN}


@pytest.mark.parametrize("node", ["n1", "not yet observed"])
@pytest.mark.parametrize("labels", [LABELS, {}], ids=["group", "no group"])
def test_work_that_proves_to_be_lost_after_its_pod_is_gone_counts_since_its_checkpoint(
    node: str, labels: dict[str, str]
) -> None:
    pod = replace(POD, labels=labels, node=node, annotations={LAST_CHECKPOINT: instant(600)})
    replay = running(pod)
    stop(replay, pod)
    replay.scrape(END + 2)
    replay.restart()
    says(replay, kueue_workload(evicted(EVICTED)), at=END + 3)

    assert causes(replay) == {"queue_preemption": 1}
    assert replay.gpu_seconds(LATER, Total.DISRUPTION_LOST) == {("low", "ml", "queue_preemption"): 2 * (END - 600)}


def test_a_workload_that_is_admitted_again_was_evicted_all_the_same() -> None:
    replay = running()
    says(replay, kueue_workload(evicted(EVICTED)), at=EVICTED)
    replay.see(replace(POD, deleted=DELETED, version=2), at=DELETED)
    says(replay, kueue_workload(evicted(END, status="False")), at=END)
    stop(replay)

    assert causes(replay) == {"queue_preemption": 1}


def test_an_earlier_eviction_says_nothing_about_a_pod_that_was_created_after_it() -> None:
    replay = running()
    says(replay, kueue_workload(evicted(50)), at=60)
    stop(replay)

    assert causes(replay) == {"deletion": 1}


def test_a_later_eviction_does_not_change_why_earlier_pods_were_deleted() -> None:
    replay, second = running(), replace(POD, name="b", created=END + 5, scheduled=END + 6, started=END + 7)
    says(replay, kueue_workload(evicted(EVICTED, reason="PodsReadyTimeout")), at=EVICTED)
    stop(replay)
    replay.see(second, at=END + 7)
    says(replay, kueue_workload(evicted(END + 100)), at=END + 100)
    stop(replay, second, at=END + 101, end=END + 110)

    assert causes(replay, END + 130) == {"queue_eviction": 1, "queue_preemption": 1}


def test_a_pod_that_was_deleted_before_its_job_was_evicted_was_deleted() -> None:
    replay = running()
    replay.see(replace(POD, deleted=DELETED, version=2), at=DELETED)
    says(replay, kueue_workload(evicted(DELETED + 10)), at=DELETED + 10)
    stop(replay)

    assert causes(replay) == {"deletion": 1}


@pytest.mark.parametrize(
    ("owner", "labels", "annotations"),
    [
        (PYTORCH | {"name": "other", "uid": "uid-other"}, {}, {"kueue.x-k8s.io/workload": "wl"}),
        (PYTORCH | {"kind": "RayCluster", "name": "train-x7k2p"}, {"ray.io/cluster": "train-x7k2p"}, {}),
        (PYTORCH | {"kind": "Job", "uid": "uid-child"}, {"jobset.sigs.k8s.io/jobset-name": "train"}, {}),
    ],
)
def test_a_pod_belongs_to_the_workload_that_it_names_or_that_owns_its_job(
    owner: Json, labels: dict[str, str], annotations: dict[str, str]
) -> None:
    form = replace(POD, owners=(owner,), labels=labels, annotations=annotations)
    replay = running(form)
    kind = {"kind": "JobSet", "apiVersion": "jobset.x-k8s.io/v1alpha2"} if "jobset" in str(labels) else {}
    says(replay, kueue_workload(evicted(EVICTED), owner=PYTORCH | kind), at=EVICTED)
    stop(replay, form)

    assert causes(replay) == {"queue_preemption": 1}


def test_a_workload_of_the_same_name_in_another_namespace_evicts_nobody_else() -> None:
    form = replace(POD, namespace="other", annotations={"kueue.x-k8s.io/workload": "wl"})
    replay = running(form)
    says(replay, kueue_workload(evicted(EVICTED)), at=EVICTED)
    stop(replay, form)

    assert causes(replay) == {"deletion": 1}


def test_a_restart_does_not_forget_an_eviction() -> None:
    replay = running()
    says(replay, kueue_workload(evicted(EVICTED)), at=EVICTED)
    replay.flush()
    replay.restart()
    stop(replay)

    assert causes(replay) == {"queue_preemption": 1}


@pytest.mark.parametrize("is_listed", [False, True])
def test_a_deleted_workload_is_forgotten(is_listed: bool) -> None:  # noqa: FBT001 - a parameter of the test
    replay, workload = running(), kueue_workload(evicted(EVICTED))
    says(replay, workload, at=EVICTED)
    if is_listed:
        replay.relist_objects(WORKLOADS, at=EVICTED)
    else:
        replay.lose_object(WORKLOADS, workload, at=EVICTED)
    stop(replay)

    assert causes(replay) == {"deletion": 1}


def test_without_the_watch_such_a_deletion_is_a_deletion() -> None:
    replay = Replay()
    replay.see(NodeForm(name="n1", gpus=8), at=1)
    replay.see(POD, at=START)
    stop(replay)

    assert causes(replay) == {"deletion": 1}


def test_the_workload_of_a_pod_is_the_name_of_an_object() -> None:
    form = replace(POD, annotations={"kueue.x-k8s.io/workload": "w" * 254})
    replay = running(form)

    [names] = [part for part in replay.fleet.parts if isinstance(part, PodWorkloads)]
    assert names.workload_of == {}
