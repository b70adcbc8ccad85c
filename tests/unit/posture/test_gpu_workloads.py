"""Which objects stand for which pods."""

from pathlib import Path

from msgspec import structs

from gputally.model.rules import Rules
from gputally.posture.document import posture_of
from gputally.posture.gpu_workloads import GpuWorkload, gpu_workloads
from gputally.posture.objects import PostureInput
from tests.unit.posture.postures import HIGH_AND_LOW, Json, a_class, a_job, pod_spec, read

VERSIONS = {"Job": "batch/v1", "ReplicaSet": "apps/v1"}


def pod(
    name: str, *, owner: tuple[str, str] | None = None, version: str = "", phase: str = "Running", **spec: object
) -> Json:
    kind, of = owner or ("", "")
    api_version = version or VERSIONS.get(kind, "v1")
    reference = {"apiVersion": api_version, "kind": kind, "name": of, "uid": of, "controller": True}
    references = [reference] if owner else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "ownerReferences": references},
        "spec": pod_spec(**spec),
        "status": {"phase": phase},
    }


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "serve", "namespace": "ml"},
    "spec": {"template": {"spec": pod_spec()}},
}


def names(found: PostureInput) -> list[tuple[str, str]]:
    return [(each.kind, each.name) for each in gpu_workloads(found, Rules())]


def in_cluster(found: PostureInput) -> PostureInput:
    return structs.replace(found, from_files=False)


def test_pods_of_an_owner_that_is_read_are_represented_by_it(tmp_path: Path) -> None:
    pods = (pod("a", owner=("Job", "train")), pod("b", owner=("ReplicaSet", "serve-6d8f")))

    assert names(read(tmp_path, a_job(), DEPLOYMENT, *pods)) == [("Deployment", "serve"), ("Job", "train")]


def test_pods_of_another_owner_are_one_workload(tmp_path: Path) -> None:
    pods = (
        pod("a", owner=("RayCluster", "ray")),
        pod("b", owner=("RayCluster", "ray")),
        pod("c", owner=("ReplicaSet", "rollout-77")),
        pod("d"),
    )

    assert names(read(tmp_path, *pods)) == [("Pod", "d"), ("RayCluster", "ray"), ("ReplicaSet", "rollout-77")]


def test_pods_of_a_volcano_job_are_not_taken_for_those_of_a_job(tmp_path: Path) -> None:
    volcano = pod("a", owner=("Job", "train"), version="batch.volcano.sh/v1alpha1")

    assert names(read(tmp_path, volcano, pod("b", owner=("Job", "train")))) == [("Job.batch.volcano.sh", "train")]


def test_without_jobs_their_pods_stand_for_them(tmp_path: Path) -> None:
    found = read(tmp_path, pod("a", owner=("Job", "train")))

    assert names(structs.replace(found, jobs=None)) == [("Job", "train")]


def test_ended_pods_and_runs_of_cron_jobs_are_left_out(tmp_path: Path) -> None:
    run = a_job()
    run["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "c", "controller": True}
    ]

    assert names(read(tmp_path, run, pod("done", phase="Succeeded"), pod("failed", phase="Failed"))) == []


def test_replicas_and_roles_of_a_training_job(tmp_path: Path) -> None:
    roles = {
        "Master": {"template": {"spec": pod_spec()}},
        "Worker": {"replicas": 3, "template": {"spec": pod_spec(gpus=4)}},
        "Cpu": {"template": {"spec": pod_spec(gpus=0)}},
    }
    training = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "gang"},
        "spec": {"pytorchReplicaSpecs": roles},
    }

    [only] = gpu_workloads(read(tmp_path, training), Rules())

    assert isinstance(only, GpuWorkload)
    assert (only.namespace, only.needs_all) == ("default", True)
    assert [(each.role, each.replicas, each.units) for each in only.templates] == [
        ("Master", 1, (("nvidia.com/gpu", 1),)),
        ("Worker", 3, (("nvidia.com/gpu", 4),)),
    ]


def test_pods_that_have_the_default_class_may_have_forgotten_theirs(tmp_path: Path) -> None:
    classes = (a_class("high", 1000), a_class("low", 100, globalDefault=True))
    pods = (pod("a", priorityClassName="low"), pod("b", priorityClassName="high"), pod("c", priorityClassName="low"))

    found = posture_of(in_cluster(read(tmp_path, *classes, *pods)), Rules())

    assert (found.default.name, found.default.pods_with_default, found.default.gpu_pods) == ("low", 2, 3)
    assert found.default.templates_without_class == ()
    assert found.findings == ()


def test_a_pod_of_a_cluster_without_class_has_none_whatever_the_default_is_now(tmp_path: Path) -> None:
    classes = (a_class("high", 1000), a_class("low", 100, globalDefault=True))

    found = posture_of(in_cluster(read(tmp_path, *classes, pod("early"))), Rules())

    [only] = found.findings
    assert (only.check, only.what) == ("classified-by-default", "its pods have no class")


def test_what_is_unknown_is_none_and_its_checks_are_named(tmp_path: Path) -> None:
    found = posture_of(structs.replace(read(tmp_path, *HIGH_AND_LOW), pods=None, resourcequotas=None), Rules())

    assert (found.quotas, found.default.gpu_pods, found.default.pods_with_default) == (None, None, None)


def test_without_classes_no_check_of_classes_runs(tmp_path: Path) -> None:
    found = posture_of(read(tmp_path, a_job()), Rules())

    assert found.classes is None
    [classes, nodes] = found.unchecked
    assert "unknown-class" in classes.impossible
    assert "retries-spent-on-preemptions" in classes.incomplete
    assert (nodes.impossible, nodes.incomplete) == ((), ("replicas-on-one-node",))
    assert found.findings == ()
