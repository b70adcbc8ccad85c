"""Messages as kubelets write them, byte for byte: the numbers here are those of api.proto, written once more."""

import pytest
from google.protobuf.message import DecodeError

from gputally.devices.kubelet.messages import (
    AllocatableResourcesRequest,
    AllocatableResourcesResponse,
    ClaimResource,
    ContainerDevices,
    GetPodResourcesRequest,
    GetPodResourcesResponse,
    ListPodResourcesRequest,
    ListPodResourcesResponse,
    decode,
    encode,
)


def field(number: int, *values: str | bytes) -> bytes:
    """A field with a text, or with a message made of fields."""
    value = b"".join(each.encode() if isinstance(each, str) else each for each in values)
    length = [len(value)] if len(value) < 0x80 else [len(value) & 0x7F | 0x80, len(value) >> 7]
    return bytes([number << 3 | 2, *length]) + value


CPU = bytes([4 << 3, 7])
"""A number in field 4."""
DEVICES = field(1, "nvidia.com/gpu") + field(2, "GPU-a") + field(2, "GPU-b") + field(3, field(1, b"\x08\x01"))
CLAIMED = field(2, "gpu.nvidia.com") + field(3, "node-1") + field(4, "gpu-0") + field(5, "a share")
CDI = field(1, field(1, "k8s.gpu.nvidia.com/device=gpu-1"))
CLAIM = field(1, "class of old") + field(2, "gpus") + field(3, "ml") + field(4, CLAIMED) + field(4, CDI)
POD = field(1, "train") + field(2, "team") + field(3, field(1, "main"), field(2, DEVICES), CPU, field(5, CLAIM)) + CPU
NEWER = field(15, "what a later kubelet adds")


def test_a_list_is_read_as_kubelets_write_it() -> None:
    (pod,) = decode(ListPodResourcesResponse, field(1, POD, NEWER) + NEWER).pod_resources
    (container,) = pod.containers
    (claim,) = container.dynamic_resources

    assert (pod.namespace, pod.name, container.name) == ("team", "train", "main")
    assert devices(container.devices[0]) == ("nvidia.com/gpu", ["GPU-a", "GPU-b"])
    assert (claim.claim_namespace, claim.claim_name) == ("ml", "gpus")
    assert [claimed(each) for each in claim.claim_resources] == [
        ("gpu.nvidia.com", "node-1", "gpu-0", []),
        ("", "", "", ["k8s.gpu.nvidia.com/device=gpu-1"]),
    ]


def test_one_pod_is_asked_for_and_read_as_kubelets_do() -> None:
    asked = field(1, "train") + field(2, "team")

    assert encode(GetPodResourcesRequest, pod_name="train", pod_namespace="team") == asked
    assert decode(GetPodResourcesResponse, field(1, POD)).pod_resources.name == "train"


def test_allocatable_devices_are_read_as_kubelets_write_them() -> None:
    reply = decode(AllocatableResourcesResponse, field(1, DEVICES) + field(3, NEWER))

    assert [devices(each) for each in reply.devices] == [("nvidia.com/gpu", ["GPU-a", "GPU-b"])]


def test_requests_for_all_are_empty() -> None:
    assert encode(ListPodResourcesRequest) == encode(AllocatableResourcesRequest) == b""


def test_what_is_no_message_is_an_error() -> None:
    with pytest.raises(DecodeError):
        decode(ListPodResourcesResponse, field(1, POD)[:-1])


def devices(some: ContainerDevices) -> tuple[str, list[str]]:
    return some.resource_name, list(some.device_ids)


def claimed(resource: ClaimResource) -> tuple[str, str, str, list[str]]:
    cdi_names = [device.name for device in resource.cdi_devices]
    return resource.driver_name, resource.pool_name, resource.device_name, cdi_names
