"""The messages of the kubelet's PodResources API, as far as they are read.

The classes are a table and never instantiated: every annotation names a field, its type and its number, and decoded
messages look as annotated. Real classes are built from it at run time, for generated code pins a version of protobuf,
and in a pool of their own, for the package is called plainly `v1`. What else a kubelet sends is skipped.
Source: kubernetes/kubelet pkg/apis/podresources/v1/api.proto.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypeVar, cast, get_args, get_origin, get_type_hints

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

SERVICE: Final = "v1.PodResourcesLister"
_PACKAGE: Final = "v1"

T = TypeVar("T")


class CDIDevice:
    """A device as container runtimes name it: `vendor/class=name`."""

    name: Annotated[str, 1]


class ClaimResource:
    """A device of a claim. Kubelets before 1.31 give only the CDI names, those of all devices of a driver at once."""

    cdi_devices: Annotated[Sequence[CDIDevice], 1]
    driver_name: Annotated[str, 2]
    pool_name: Annotated[str, 3]
    device_name: Annotated[str, 4]


class DynamicResource:
    """What a container has by one ResourceClaim."""

    claim_name: Annotated[str, 2]
    claim_namespace: Annotated[str, 3]
    claim_resources: Annotated[Sequence[ClaimResource], 4]


class ContainerDevices:
    """Devices of a device plugin's resource: kubelets write one of these for each device and NUMA node of it.

    Source: k8s.io/kubernetes pkg/kubelet/cm/container_manager.go, containerDevicesFromResourceDeviceInstances.
    """

    resource_name: Annotated[str, 1]
    device_ids: Annotated[Sequence[str], 2]


class ContainerResources:
    """What one container has, a restartable init container too."""

    name: Annotated[str, 1]
    devices: Annotated[Sequence[ContainerDevices], 2]
    dynamic_resources: Annotated[Sequence[DynamicResource], 5]


class PodResources:
    """What the containers of one pod have; there is no UID."""

    name: Annotated[str, 1]
    namespace: Annotated[str, 2]
    containers: Annotated[Sequence[ContainerResources], 3]


class ListPodResourcesRequest:
    """All pods."""


class ListPodResourcesResponse:
    """Every pod of the node, those without devices too."""

    pod_resources: Annotated[Sequence[PodResources], 1]


class GetPodResourcesRequest:
    """One pod."""

    pod_name: Annotated[str, 1]
    pod_namespace: Annotated[str, 2]


class GetPodResourcesResponse:
    """That pod."""

    pod_resources: Annotated[PodResources, 1]


class AllocatableResourcesRequest:
    """All devices that may be allocated."""


class AllocatableResourcesResponse:
    """The healthy devices of the device plugins, held or not."""

    devices: Annotated[Sequence[ContainerDevices], 1]


_SHAPES: Final = (
    CDIDevice,
    ClaimResource,
    DynamicResource,
    ContainerDevices,
    ContainerResources,
    PodResources,
    ListPodResourcesRequest,
    ListPodResourcesResponse,
    GetPodResourcesRequest,
    GetPodResourcesResponse,
    AllocatableResourcesRequest,
    AllocatableResourcesResponse,
)


def encode(shape: type, **fields: object) -> bytes:
    """A message on the wire; nested messages are given as dicts."""
    return _MESSAGES[shape.__name__](**fields).SerializeToString()


def decode(shape: type[T], data: bytes) -> T:
    """The message in `data`; google.protobuf.message.DecodeError if there is none."""
    return cast("T", _MESSAGES[shape.__name__].FromString(data))


def _built(shapes: Sequence[type]) -> Mapping[str, type[Message]]:
    file = FileDescriptorProto(name="gputally/pod_resources.proto", package=_PACKAGE, syntax="proto3")
    for shape in shapes:
        _describe(shape, file.message_type.add(name=shape.__name__))
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    names = [shape.__name__ for shape in shapes]
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in names}


def _describe(shape: type, message: DescriptorProto) -> None:
    for name, hint in get_type_hints(shape, include_extras=True).items():
        kind, number = get_args(hint)
        repeated = get_origin(kind) is Sequence
        element = get_args(kind)[0] if repeated else kind
        field = message.field.add(name=name, number=number)
        field.label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
        field.type = FieldDescriptorProto.TYPE_STRING if element is str else FieldDescriptorProto.TYPE_MESSAGE
        if element is not str:
            field.type_name = f".{_PACKAGE}.{element.__name__}"


_MESSAGES: Final = _built(_SHAPES)
