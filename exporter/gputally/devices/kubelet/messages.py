"""The messages of the kubelet's PodResources API, limited to the fields that gputally reads.

The classes are schemas and never instantiated: each annotation gives a field's name, type and number, and decoded
messages have these fields. The protobuf classes are built at run time, because generated code pins a protobuf version,
and in a separate pool, because the package name `v1` may collide. Unknown fields are skipped.
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
    """A device by its CDI name: `vendor/class=name`."""

    name: Annotated[str, 1]


class ClaimResource:
    """A device of a claim. Kubelets before 1.31 list only CDI names, for all devices of a driver together."""

    cdi_devices: Annotated[Sequence[CDIDevice], 1]
    driver_name: Annotated[str, 2]
    pool_name: Annotated[str, 3]
    device_name: Annotated[str, 4]


class DynamicResource:
    """Devices of a container from one ResourceClaim."""

    claim_name: Annotated[str, 2]
    claim_namespace: Annotated[str, 3]
    claim_resources: Annotated[Sequence[ClaimResource], 4]


class ContainerDevices:
    """Devices of a device plugin resource. Kubelets send one message per device and NUMA node.

    Source: k8s.io/kubernetes pkg/kubelet/cm/container_manager.go, containerDevicesFromResourceDeviceInstances.
    """

    resource_name: Annotated[str, 1]
    device_ids: Annotated[Sequence[str], 2]


class ContainerResources:
    """Devices of one container, including restartable init containers."""

    name: Annotated[str, 1]
    devices: Annotated[Sequence[ContainerDevices], 2]
    dynamic_resources: Annotated[Sequence[DynamicResource], 5]


class PodResources:
    """Devices of one pod's containers. The API has no pod UID."""

    name: Annotated[str, 1]
    namespace: Annotated[str, 2]
    containers: Annotated[Sequence[ContainerResources], 3]


class ListPodResourcesRequest:
    """Request for all pods."""


class ListPodResourcesResponse:
    """Every pod of the node, including pods without devices."""

    pod_resources: Annotated[Sequence[PodResources], 1]


class GetPodResourcesRequest:
    """Request for one pod."""

    pod_name: Annotated[str, 1]
    pod_namespace: Annotated[str, 2]


class GetPodResourcesResponse:
    """The requested pod."""

    pod_resources: Annotated[PodResources, 1]


class AllocatableResourcesRequest:
    """Request for all allocatable devices."""


class AllocatableResourcesResponse:
    """The healthy devices of the device plugins, allocated or not."""

    devices: Annotated[Sequence[ContainerDevices], 1]


_SCHEMAS: Final = (
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
    """Serialize a message; pass nested messages as dicts."""
    return _MESSAGES[shape.__name__](**fields).SerializeToString()


def decode(shape: type[T], data: bytes) -> T:
    """Parse `data`; raises google.protobuf.message.DecodeError if it is invalid."""
    return cast("T", _MESSAGES[shape.__name__].FromString(data))


def _build_classes(schemas: Sequence[type]) -> Mapping[str, type[Message]]:
    file = FileDescriptorProto(name="gputally/pod_resources.proto", package=_PACKAGE, syntax="proto3")
    for shape in schemas:
        _describe(shape, file.message_type.add(name=shape.__name__))
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    names = [shape.__name__ for shape in schemas]
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


_MESSAGES: Final = _build_classes(_SCHEMAS)
