"""Devices that nodes offer and no rule weighs are named, and GPUs that are never offered are not unhealthy."""

from fractions import Fraction

import pytest

from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.nodes.inventory import MOST_RESOURCES
from gputally.model.kube.kinds import Kind
from gputally.model.rules import ResourceRule, Rules
from gputally.shares.unknown_devices import is_unknown_device
from tests.core.manifests import NodeForm, us
from tests.core.replay import Replay

COUNTED = {"nvidia.com/gpu.count": "8"}


def named(replay: Replay) -> dict[str, int]:
    found = publish(replay.fleet, now_us=us(10), ledger={}).unknown_offers
    return {resource: nodes for resource, nodes in found.items() if nodes}


def node(name: str, *resources: str, amount: int = 2) -> NodeForm:
    return NodeForm(name=name, capacity=dict.fromkeys(resources, amount))


@pytest.mark.parametrize(
    "resource",
    [
        *("nvidia.com/GA102GL_A10", "nvidia.com/TU104GL_Tesla_T4", "nvidia.com/NVIDIA_A10-12Q", "nvidia.com/pgpu"),
        *("nvidia.com/gpu-a100", "nvidia.com/GH100_H100_SXM5_80GB", "amd.com/cpx_nps4", "gpu.intel.com/flex"),
        *("vendor.com/gpu-foo", "example.com/GPU", "volcano.sh/vgpu-number", "aliyun.com/gpu-mem", "gpu.acme.io/a"),
    ],
)
def test_devices_that_look_like_gpus_are_unknown_without_a_rule(resource: str) -> None:
    assert is_unknown_device(resource, Rules())
    assert not is_unknown_device(resource, Rules(resources=(ResourceRule(pattern=resource),)))


@pytest.mark.parametrize(
    "resource",
    [
        *("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "nvidia.com/gpumem", "amd.com/gpu"),
        *("cpu", "gpu", "kubernetes.io/gpu", "requests.kubernetes.io/gpu", "hugepages-2Mi", "example.com/fuse"),
        *("nvidia.com/hostdev", "nvidia.com/rdma_shared_device_a", "nvidia.com/mlnxnics", "nvidia.com/cx5_bond"),
        *("amd.com/vnic", "nvidia.com/sriov_rdma", "nvidia.com/bf3_p0", "nvidia.com/ib_p0", "nvidia.com/priority"),
        *("gpu.intel.com/i915_monitoring", "gpu.intel.com/xe_monitoring", "gpu.intel.com/millicores"),
        *("gpu.intel.com/memory.max", "gpu.intel.com/tiles", "intel.com/qat"),
    ],
)
def test_other_resources_are_not(resource: str) -> None:
    assert not is_unknown_device(resource, Rules())


def test_without_built_in_rules_their_gpus_are_unknown() -> None:
    assert is_unknown_device("nvidia.com/gpu", Rules(built_in_resources=False))


def test_unknown_devices_of_nodes_are_counted_by_name_as_long_as_they_are_offered() -> None:
    replay = Replay()
    replay.see(node("n1", "nvidia.com/GA102GL_A10"), node("n2", "nvidia.com/GA102GL_A10", "vendor.com/gpu-foo"), at=1)
    replay.see(node("n3", "nvidia.com/gpu"), node("n4", "vendor.com/gpu-bar", amount=0), at=1)
    assert named(replay) == {"nvidia.com/GA102GL_A10": 2, "vendor.com/gpu-foo": 1}

    replay.see(node("n2", "nvidia.com/gpu"), at=2)
    assert named(replay) == {"nvidia.com/GA102GL_A10": 1}

    replay.lose(node("n1", "nvidia.com/GA102GL_A10"), at=3)
    assert named(replay) == {}


def test_their_names_are_limited() -> None:
    replay = Replay()
    for i in range(MOST_RESOURCES + 5):
        replay.see(node(f"n{i}", f"vendor.com/gpu-{i:02}", "vendor.com/gpu"), at=1)

    found = named(replay)

    assert len(found) == MOST_RESOURCES + 1
    assert found["vendor.com/gpu"] == MOST_RESOURCES + 5
    assert found["other"] == 6


def test_the_next_process_knows_them_and_forgets_nodes_that_are_gone() -> None:
    replay = Replay()
    replay.see(node("n1", "vendor.com/gpu-a"), node("n2", "vendor.com/gpu-b"), at=1)
    replay.flush()
    replay.restart(at=2)
    assert named(replay) == {"vendor.com/gpu-a": 1, "vendor.com/gpu-b": 1}

    replay.relist(Kind.NODES, node("n2", "vendor.com/gpu-b"), at=3, since=2)
    assert named(replay) == {"vendor.com/gpu-b": 1}


def of_node(*forms: NodeForm) -> dict[str, Fraction]:
    replay = Replay()
    for at, form in enumerate(forms):
        replay.see(form, at=at)
    return {state: gpu_seconds for state, gpu_seconds in replay.capacity(len(forms)).items() if gpu_seconds}


def test_gpus_that_a_node_has_never_offered_are_unsliced() -> None:
    assert of_node(NodeForm(gpus=0, labels=COUNTED)) == {"unsliced": 8}
    assert of_node(NodeForm(capacity={}, labels=COUNTED), NodeForm(capacity={}, labels=COUNTED)) == {"unsliced": 16}


def test_gpus_whose_device_plugin_was_lost_are_unhealthy() -> None:
    assert of_node(NodeForm(labels=COUNTED), NodeForm(gpus=0, labels=COUNTED)) == {"free": 8, "unhealthy": 8}


def test_gpus_that_are_offered_late_are_free_from_then_on() -> None:
    assert of_node(NodeForm(gpus=0, labels=COUNTED), NodeForm(labels=COUNTED)) == {"unsliced": 8, "free": 8}
