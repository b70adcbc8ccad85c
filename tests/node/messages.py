"""The kubelet's gRPC messages, made at run time from a table that names what these tests use of them."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

MessageClass = Any
"""A class that protobuf made; no type checker knows its fields."""

SCALARS = {
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "string": FieldDescriptorProto.TYPE_STRING,
}

# Each field as `name=number:type`, with a `*` after the type if it is repeated. A map is a list of pairs on the wire.
DEVICE_PLUGIN = {
    "DevicePluginOptions": "pre_start_required=1:bool get_preferred_allocation_available=2:bool",
    "RegisterRequest": "version=1:string endpoint=2:string resource_name=3:string options=4:DevicePluginOptions",
    "Empty": "",
    "ListAndWatchResponse": "devices=1:Device*",
    "Device": "ID=1:string health=2:string",
    "AllocateRequest": "container_requests=1:ContainerAllocateRequest*",
    "ContainerAllocateRequest": "devices_ids=1:string*",
    "AllocateResponse": "container_responses=1:ContainerAllocateResponse*",
    "ContainerAllocateResponse": "envs=1:Pair*",
    "Pair": "key=1:string value=2:string",
}
POD_RESOURCES = {
    "ListPodResourcesRequest": "",
    "ListPodResourcesResponse": "pod_resources=1:PodResources*",
    "PodResources": "name=1:string namespace=2:string containers=3:ContainerResources*",
    "ContainerResources": "name=1:string devices=2:ContainerDevices*",
    "ContainerDevices": "resource_name=1:string device_ids=2:string*",
    "AllocatableResourcesRequest": "",
    "AllocatableResourcesResponse": "devices=1:ContainerDevices*",
}


def message_classes(package: str, table: Mapping[str, str]) -> Mapping[str, MessageClass]:
    """Classes by name, in a pool of their own: packages called `v1` are many."""
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in table.items():
        file.message_type.append(DescriptorProto(name=name, field=[field(package, text) for text in fields.split()]))
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in table}


def field(package: str, text: str) -> FieldDescriptorProto:
    """Of `devices=1:Device*`."""
    name, _, rest = text.partition("=")
    number, _, kind = rest.partition(":")
    repeated = kind.endswith("*")
    made = FieldDescriptorProto(
        name=name,
        number=int(number),
        label=FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL,
    )
    kind = kind.removesuffix("*")
    if kind in SCALARS:
        made.type = SCALARS[kind]
    else:
        made.type, made.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{package}.{kind}"
    return made
