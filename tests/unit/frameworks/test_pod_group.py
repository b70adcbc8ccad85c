"""Which pods are one group, and what a kind does when it loses one."""

from dataclasses import replace
from typing import Any

import pytest

from gputally.accounting.lost_work.groups import GroupIndex
from gputally.frameworks.framework import OnLoss
from gputally.frameworks.groups import PodGroup, attempt_of, group_of
from gputally.model.pod_record import PodRecord
from tests.core.manifests import PodForm, as_pod
from tests.core.replay import Replay

LWS = "leaderworkerset.sigs.k8s.io"


def record(
    labels: dict[str, str],
    *,
    name: str = "a",
    spec: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
) -> PodRecord:
    """As the fleet keeps it, with the labels that it needs."""
    replay = Replay()
    manifest = PodForm(name=name, labels=labels | {"app": "x"}, annotations=annotations or {}).manifest()
    manifest["spec"] |= spec or {}
    replay.see_pod(as_pod(manifest), at=10)
    return replay.fleet.pods.records[f"uid-{name}"]


@pytest.mark.parametrize(
    ("labels", "kind", "name", "on_loss"),
    [
        ({f"{LWS}/name": "serve", f"{LWS}/group-index": "3"}, "LeaderWorkerSet", "serve/3", OnLoss.RESTART),
        (
            {"jobset.sigs.k8s.io/jobset-name": "t", "jobset.sigs.k8s.io/jobset-uid": "7", "job-name": "t-0"},
            "JobSet",
            "t/7",
            OnLoss.RESTART,
        ),
        ({"training.kubeflow.org/job-name": "mpi"}, "TrainingJob", "mpi", OnLoss.WAIT),
        ({"volcano.sh/job-name": "v", "volcano.sh/job-version": "1"}, "VolcanoJob", "v", OnLoss.WAIT),
        ({"ray.io/cluster": "r"}, "RayCluster", "r", OnLoss.CONTINUE),
        ({"ray.io/cluster": "r", "ray.io/worker-group-replica-name": "w-0"}, "RayReplica", "r/w-0", OnLoss.RESTART),
        ({"kueue.x-k8s.io/pod-group-name": "g"}, "KueuePodGroup", "g", OnLoss.RESTART),
        (
            {"batch.kubernetes.io/job-name": "j", "batch.kubernetes.io/controller-uid": "9"},
            "Job",
            "j/9",
            OnLoss.CONTINUE,
        ),
    ],
)
def test_the_labels_of_a_framework_name_the_group(
    labels: dict[str, str], kind: str, name: str, on_loss: OnLoss
) -> None:
    assert group_of(record(labels)) == PodGroup(kind, "ml", name, on_loss)


def test_a_pod_may_name_its_pod_group_in_its_spec() -> None:
    found = record({}, spec={"schedulingGroup": {"podGroupName": "gang"}})

    assert group_of(found) == PodGroup("PodGroup", "ml", "gang", OnLoss.WAIT)


def test_a_pod_without_such_labels_is_on_its_own() -> None:
    assert group_of(record({"team": "red"})) is None
    assert group_of(record({f"{LWS}/name": "serve"})) is None


@pytest.mark.parametrize(("text", "attempt"), [("2", 2), ("", 0), ("-1", 0), ("x", 0), ("9" * 63, 0)])
def test_a_jobset_counts_its_restarts_in_a_label(text: str, attempt: int) -> None:
    labels = {"jobset.sigs.k8s.io/jobset-name": "t", "jobset.sigs.k8s.io/restart-attempt": text}

    assert attempt_of(record(labels)) == attempt


@pytest.mark.parametrize(("text", "attempt"), [("2", 2), ("", 0), ("-1", 0), ("x", 0), ("9" * 63, 0)])
def test_a_volcano_job_counts_its_restarts_in_an_annotation(text: str, attempt: int) -> None:
    annotations = {"volcano.sh/job-version": text, "volcano.sh/job-retry-count": "7"}

    assert attempt_of(record({"volcano.sh/job-name": "t"}, annotations=annotations)) == attempt


def test_an_index_has_the_existing_pods_of_each_group() -> None:
    index, labels = GroupIndex(), {"training.kubeflow.org/job-name": "t"}
    a, b = record(labels), record(labels, name="b")
    index.put(a)
    index.put(b)
    group = index.of("uid-a")
    assert group
    assert index.members(group) == {"uid-a", "uid-b"}
    assert index.of("uid-b") is group

    moved = record({"training.kubeflow.org/job-name": "u"}, name="b")
    index.put(moved)
    assert index.members(group) == {"uid-a"}

    index.drop("uid-a")
    index.drop("uid-b")
    assert not index._members
    assert not index._group_of


def test_a_group_is_of_one_namespace() -> None:
    labels = {"training.kubeflow.org/job-name": "t"}
    replay = Replay()
    form = PodForm(labels=labels)
    replay.see(form, replace(form, namespace="other", name="b"), at=10)

    assert len({group_of(each) for each in replay.fleet.pods.records.values()}) == 2
