from pathlib import Path

import pytest

from gputally.model.rules import Rules
from gputally.model.units import GPU
from gputally.posture.document import posture_of
from gputally.posture.quotas import GpuCapacity, QuotaSum
from tests.unit.posture.postures import Json, posture_of_file, read


def quota(name: str, namespace: str, hard: Json, *, used: Json | None = None, **spec: object) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": hard} | spec,
        "status": {"used": used} if used else {},
    }


def node(gpus: int, *, labels: Json | None = None, resource: str = "nvidia.com/gpu") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{gpus}", "labels": labels or {}},
        "status": {"capacity": {resource: str(gpus), "cpu": "8"}},
    }


SCOPED = {
    "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a", "b"]}]}
}


def test_a_quota_has_its_limit_use_and_headroom_by_class(tmp_path: Path) -> None:
    hard = {"requests.nvidia.com/gpu": "6", "requests.cpu": "100", "pods": "10"}
    found = posture_of(
        read(tmp_path, quota("gpus", "alpha", hard, used={"requests.nvidia.com/gpu": "5"}, **SCOPED)), Rules()
    )

    [only] = found.quotas or ()
    assert (only.namespace, only.name, only.scope, only.resource) == ("alpha", "gpus", "a or b", "nvidia.com/gpu")
    assert (only.hard, only.used, only.headroom) == (6, 5, 1)


def test_the_use_of_a_quota_in_a_manifest_is_unknown_not_0(tmp_path: Path) -> None:
    found = posture_of(read(tmp_path, quota("gpus", "alpha", {"requests.nvidia.com/gpu": 6})), Rules())

    [only] = found.quotas or ()
    assert (only.scope, only.used, only.headroom) == ("all pods", None, None)


def test_limits_of_classes_add_up_and_a_limit_of_the_namespace_replaces_them(tmp_path: Path) -> None:
    gpus = "requests.nvidia.com/gpu"
    manifests = (
        quota("by-class", "alpha", {gpus: 6}, **SCOPED),
        quota("by-class-too", "alpha", {gpus: 2}, **SCOPED),
        quota("by-class", "beta", {gpus: 6}, **SCOPED),
        quota("all", "beta", {gpus: 4}),
        quota("mig", "beta", {"requests.nvidia.com/mig-1g.10gb": 7}),
    )

    assert posture_of(read(tmp_path, *manifests, node(8)), Rules()).sums == (
        QuotaSum(resource="nvidia.com/gpu", hard=12, offered=8),
        QuotaSum(resource="nvidia.com/mig-1g.10gb", hard=7, offered=0),
    )
    assert {each.offered for each in posture_of(read(tmp_path, *manifests), Rules()).sums} == {None}


def test_the_capacity_counts_physical_gpus_and_the_devices_that_quotas_limit(tmp_path: Path) -> None:
    sliced = node(16, labels={"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "4"})

    found = posture_of(read(tmp_path, node(8), sliced, node(1, resource="example.com/fpga")), Rules())

    assert found.capacity == GpuCapacity(nodes=2, physical=12 * GPU, offered={"nvidia.com/gpu": 24})


def test_without_nodes_the_capacity_is_unknown() -> None:
    found = posture_of_file("s1.yaml")

    assert found.capacity is None
    assert [(each.resource, each.why) for each in found.unchecked] == [("nodes", "the files have no Node")]


@pytest.mark.parametrize(
    ("operator", "words"), [("NotIn", "not a or b"), ("Exists", "any class"), ("DoesNotExist", "no class")]
)
def test_the_scope_of_a_quota_in_words(tmp_path: Path, operator: str, words: str) -> None:
    term = {"scopeName": "PriorityClass", "operator": operator, "values": ["a", "b"]}
    selector = {"matchExpressions": [term, {"scopeName": "Terminating", "operator": "Exists"}]}

    found = posture_of(
        read(tmp_path, quota("gpus", "alpha", {"requests.nvidia.com/gpu": 6}, scopeSelector=selector)), Rules()
    )

    [only] = found.quotas or ()
    assert only.scope == f"{words} and scope Terminating"
    assert not only.is_by_class
