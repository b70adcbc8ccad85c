"""Who holds what, from a kubelet's list."""

import random
from typing import Any

from gputally.devices.kubelet.device_assignments import NVIDIA, DeviceAssignment, DeviceId, Wanted, assignments
from gputally.devices.kubelet.messages import ListPodResourcesResponse, decode, encode
from gputally.model.rules import ResourceRule, Rules
from tests.fakes.kubelet import cdi, claim, claimed, pod

CLAIM_UID = "dab5ab50-d59a-42a6-af16-cfd4628c0f7a"


def held(*pods: dict[str, Any], wanted: Wanted = NVIDIA) -> tuple[DeviceAssignment, ...]:
    reply = decode(ListPodResourcesResponse, encode(ListPodResourcesResponse, pod_resources=pods))
    return assignments(reply.pod_resources, wanted)


def texts(*pods: dict[str, Any], wanted: Wanted = NVIDIA) -> list[str]:
    return [each.device.text for each in held(*pods, wanted=wanted)]


def by_claim(device: DeviceId, *, pool: str = "node-1") -> DeviceAssignment:
    return DeviceAssignment(
        namespace="ml",
        pod="train",
        container="main",
        device=device,
        claim="ml/gpus",
        driver="gpu.nvidia.com",
        pool=pool,
    )


def test_a_container_holds_each_of_its_devices() -> None:
    assert held(pod("ml/train", {"nvidia.com/gpu": ["GPU-a", "GPU-b"]}, container="worker")) == tuple(
        DeviceAssignment(
            namespace="ml",
            pod="train",
            container="worker",
            resource="nvidia.com/gpu",
            device=DeviceId(text=uuid, uuid=uuid),
        )
        for uuid in ("GPU-a", "GPU-b")
    )


def test_each_replica_that_a_container_has_is_held_by_itself() -> None:
    assert texts(pod("ml/a", {"nvidia.com/gpu.shared": ["GPU-a::1", "GPU-a::0"]})) == ["GPU-a::0", "GPU-a::1"]


def test_a_device_that_is_told_once_for_each_numa_node_is_held_once() -> None:
    assert texts(pod("ml/a", {"nvidia.com/gpu": ["GPU-a", "GPU-b", "GPU-a"]})) == ["GPU-a", "GPU-b"]


def test_what_is_no_gpu_is_left_out() -> None:
    assert texts(
        pod("ml/a", {"nvidia.com/gpu": ["GPU-a"], "nvidia.com/mig-1g.5gb": ["MIG-a"], "nvidia.com/pgpu": ["7"]}),
        pod(
            "net/b", {"example.com/nic": ["eth1"]}, claims=[claim("net/c", claimed("nic-0", driver="nic.example.com"))]
        ),
        pod("net/c", claims=[claim("net/d", claimed("channel-0", driver="compute-domain.nvidia.com"))]),
        pod("web/d"),
    ) == ["GPU-a", "MIG-a"]


def test_what_is_wanted_can_be_named() -> None:
    rules = (ResourceRule(pattern="example.com/slice-*", weight=250_000), ResourceRule(pattern="nvidia.com/gpu"))
    only = Rules(resources=rules, built_in_resources=False)
    wanted = Wanted(rules=only, names=frozenset({"example.com/a100"}), drivers=frozenset())

    assert texts(
        pod(
            "ml/a",
            {"example.com/a100": ["GPU-a"], "example.com/slice-2": ["MIG-b"], "nvidia.com/mig-1g.5gb": ["MIG-c"]},
        ),
        pod("ml/b", {"nvidia.com/gpu": ["GPU-d"]}, claims=[claim("ml/c", claimed("gpu-0"))]),
        wanted=wanted,
    ) == ["GPU-a", "MIG-b", "GPU-d"]
    assert [wanted.unit(name) for name in ("example.com/slice-2", "example.com/a100")] == [250_000, 0]


def test_a_claimed_device_is_held_under_the_name_of_the_claim() -> None:
    claims = [claim("ml/gpus", claimed("gpu-0"), claimed("gpu-1-mig-1g5gb-19-2"))]

    assert held(pod("ml/train", claims=claims)) == (
        by_claim(DeviceId(text="gpu-0", minor=0)),
        by_claim(DeviceId(text="gpu-1-mig-1g5gb-19-2", minor=1, profile=19, start=2)),
    )


def test_a_claim_that_gives_only_cdi_names_is_read_from_them_and_each_device_once() -> None:
    names = cdi(
        "k8s.gpu.nvidia.com/device=gpu-0",
        f"k8s.gpu.nvidia.com/claim={CLAIM_UID}-gpu-0",
        f"k8s.gpu.nvidia.com/claim={CLAIM_UID}-gpu-1-mig-19-2-1",
        "k8s.compute-domain.nvidia.com/claim=channel-0",
        "nvidia.com/gpu=0",
        "no CDI name",
    )

    assert held(pod("ml/train", claims=[claim("ml/gpus", names)])) == (
        by_claim(DeviceId(text="gpu-0", minor=0), pool=""),
        by_claim(DeviceId(text="gpu-1-mig-19-2-1", minor=1, profile=19, start=2), pool=""),
    )


def test_cdi_names_beside_a_device_name_add_nothing() -> None:
    names = [f"k8s.gpu.nvidia.com/claim={CLAIM_UID}-gpu-{minor}" for minor in range(2)]
    first, second = claimed("gpu-0") | cdi(names[0]), claimed("gpu-1") | cdi(*names)

    assert held(pod("ml/train", claims=[claim("ml/gpus", first, second)])) == (
        by_claim(DeviceId(text="gpu-0", minor=0)),
        by_claim(DeviceId(text="gpu-1", minor=1)),
    )


def test_a_pod_listed_twice_and_a_device_held_twice_are_told_twice() -> None:
    ended, running = pod("ml/a", {"nvidia.com/gpu": ["GPU-a"]}), pod("ml/b", {"nvidia.com/gpu": ["GPU-a"]})

    assert [(each.pod, each.device.uuid) for each in held(running, ended, ended)] == [
        ("a", "GPU-a"),
        ("a", "GPU-a"),
        ("b", "GPU-a"),
    ]


def test_the_order_in_which_the_kubelet_lists_does_not_show() -> None:
    pods = [pod(f"ns-{n % 3}/pod-{n}", {"nvidia.com/gpu": [f"GPU-{n}", f"GPU-{n}::1"]}) for n in range(9)]
    shuffled = random.Random(7).sample(pods, len(pods))

    assert held(*shuffled) == held(*pods)
