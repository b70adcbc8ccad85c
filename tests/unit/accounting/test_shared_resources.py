"""Replicas belong to one resource of a node, and both programs give each share the same weight."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from tests.core import layouts
from tests.core.layouts import Layout
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Replay

GPU = "nvidia.com/gpu"
SLICE = "nvidia.com/mig-1g.10gb"


def with_pods(layout: Layout, pods: Sequence[PodForm]) -> Replay:
    replay = Replay()
    replay.see(layout.node, at=1)
    replay.see(*pods, at=11)
    return replay


def allocated(layout: Layout, resource: str, count: int) -> int:
    """GPU-seconds of so many pods with one unit each, in 100 s."""
    replay = with_pods(layout, [layout.pod(f"p{i}", resource) for i in range(count)])
    return round(sum(replay.gpu_seconds(110).values()))


@pytest.mark.parametrize(
    ("layout", "resource", "expected"),
    [
        (layouts.SHARED_SLICES, SLICE, 25),
        (layouts.RENAMED_SLICES, f"{SLICE}.shared", 25),
        (layouts.SHARED_GPU_BESIDE_SLICES, SLICE, 100),
        (layouts.SHARED_GPU_BESIDE_SLICES, GPU, 175),
        (layouts.TIME_SLICED, GPU, 175),
        (layouts.RENAMED, f"{GPU}.shared", 175),
        (layouts.SINGLE, GPU, 25),
        (layouts.GKE_CLIENTS, GPU, 88),
        (layouts.GKE_PARTITIONS, GPU, 100),
        (layouts.GKE_SHARED_PARTITIONS, GPU, 75),
        (layouts.ONE_REPLICA_LABELLED, GPU, 14),
        (layouts.STALE_REPLICAS, GPU, 70),
        (layouts.MORE_REPLICAS_LABELLED, GPU, 70),
        (layouts.SLICES_WITHOUT_REPLICAS, SLICE, 25),
        (layouts.SINGLE_WITHOUT_REPLICAS, GPU, 25),
        (layouts.RENAMED_WITHOUT_REPLICAS, f"{GPU}.shared", 175),
    ],
)
def test_seven_pods_cost_what_the_replicas_of_their_own_resource_make_of_a_gpu(
    layout: Layout, resource: str, expected: int
) -> None:
    assert allocated(layout, resource, 7) == expected


@pytest.mark.parametrize(
    ("layout", "gpus"),
    [
        (layouts.SHARED_SLICES, 1),
        (layouts.RENAMED_SLICES, 1),
        (layouts.SHARED_GPU_BESIDE_SLICES, 2),
        (layouts.TIME_SLICED, 1),
        (layouts.SINGLE, 2),
        (layouts.GKE_CLIENTS, 2),
        (layouts.GKE_PARTITIONS, 1),
        (layouts.GKE_SHARED_PARTITIONS, 2),
        (layouts.ONE_REPLICA_LABELLED, 1),
        (layouts.STALE_REPLICAS, 2),
        (layouts.MORE_REPLICAS_LABELLED, 1),
        (layouts.SLICES_WITHOUT_REPLICAS, 1),
        (layouts.SINGLE_WITHOUT_REPLICAS, 2),
        (layouts.RENAMED_WITHOUT_REPLICAS, 2),
    ],
)
def test_the_physical_gpus_are_counted_once_however_their_resources_are_shared(layout: Layout, gpus: int) -> None:
    capacity = with_pods(layout, ()).capacity(100)

    assert sum(capacity.values()) == 100 * gpus
    assert capacity.keys() <= {"free", "unsliced"}
    left_over = Fraction(200, 7) if layout is layouts.GKE_SHARED_PARTITIONS else 0
    assert capacity.get("unsliced", 0) - left_over < Fraction(1, 100)


@pytest.mark.parametrize(
    ("layout", "resources"),
    [
        (layouts.SHARED_SLICES, [SLICE]),
        (layouts.RENAMED_SLICES, [f"{SLICE}.shared"]),
        (layouts.SHARED_GPU_BESIDE_SLICES, [SLICE, GPU]),
        (layouts.TIME_SLICED, [GPU]),
        (layouts.RENAMED, [f"{GPU}.shared"]),
        (layouts.SINGLE, [GPU]),
        (layouts.GKE_CLIENTS, [GPU]),
        (layouts.GKE_PARTITIONS, [GPU]),
        (layouts.GKE_SHARED_PARTITIONS, [GPU]),
        (layouts.ONE_REPLICA_LABELLED, [GPU]),
        (layouts.STALE_REPLICAS, [GPU]),
        (layouts.MORE_REPLICAS_LABELLED, [GPU]),
        (layouts.SLICES_WITHOUT_REPLICAS, [SLICE]),
        (layouts.SINGLE_WITHOUT_REPLICAS, [GPU]),
        (layouts.RENAMED_WITHOUT_REPLICAS, [f"{GPU}.shared"]),
        (Layout(replicas={GPU: 3}), [GPU]),
        (
            Layout(profiles=(("3g.40gb", "2g.20gb"),), replicas={"nvidia.com/mig-3g.40gb": 7}),
            ["nvidia.com/mig-3g.40gb"],
        ),
    ],
)
def test_agent_and_aggregator_give_each_pod_the_same_share(layout: Layout, resources: list[str]) -> None:
    pods = [layout.pod(f"{resource[-4:]}-{n}", resource, n) for resource in resources for n in (1, 2)]
    replay = with_pods(layout, pods)

    assert layout.shares(*pods) == {pod.name: replay.segments(pod.name)[0].quantity for pod in pods}


def test_a_holder_of_all_replicas_weighs_what_they_add_up_to() -> None:
    layout = Layout(replicas={GPU: 3})
    replay = with_pods(layout, [pod := layout.pod("a", GPU, 3)])

    assert layout.shares(pod) == {"a": 999_999}
    assert replay.gpu_seconds(11) == {("none", "ml", "NVIDIA-A100-SXM4-80GB", "running"): Fraction(999_999, 10**6)}


def test_what_hami_gave_a_pod_is_what_it_said_when_the_pod_was_bound() -> None:
    """Whoever may change the pod later changes nothing."""
    replay, given = Replay(), "hami.io/vgpu-devices-allocated"
    registered = {"hami.io/node-nvidia-register": "GPU-a,10,40960,100,A100,0,true:"}
    bound = PodForm(version=2, node="n1", scheduled=10, started=12, annotations={given: "GPU-a,A100,10240,0:;"})
    replay.see(NodeForm(gpus=10, annotations=registered), at=1)
    replay.see(PodForm(), at=5)
    replay.see(bound, at=12)

    replay.see(replace(bound, version=3, annotations={given: "GPU-a,A100,1,0:;"}), at=20)

    assert round(sum(replay.gpu_seconds(110).values())) == 25
