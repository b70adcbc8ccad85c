"""What a kubelet says at its PodResources socket, asked with as little as will do: a second opinion on our agent's.

It refuses (RESOURCE_EXHAUSTED) all but 100 questions a second, of all clients together. For a second after its start it
says that there are no pods.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc

from tests.node.messages import POD_RESOURCES, message_classes

MESSAGES = message_classes("v1", POD_RESOURCES)
Held = dict[str, list[str]]
"""Device ids by resource, sorted."""


def held_by_pods(socket: Path) -> Mapping[str, Held]:
    """What the pods on the node hold, by `namespace/name`; a pod without devices holds {}."""
    pods = call(socket, "List", "ListPodResourcesRequest", "ListPodResourcesResponse").pod_resources
    return {
        f"{pod.namespace}/{pod.name}": devices(each for container in pod.containers for each in container.devices)
        for pod in pods
    }


def allocatable(socket: Path) -> Held:
    """What the node could give to pods, whether or not it has."""
    answer = call(socket, "GetAllocatableResources", "AllocatableResourcesRequest", "AllocatableResourcesResponse")
    return devices(answer.devices)


def devices(entries: Any) -> Held:  # noqa: ANN401 - protobuf makes the classes at run time
    held: Held = {}
    for entry in entries:
        held.setdefault(entry.resource_name, []).extend(entry.device_ids)
    return {resource: sorted(ids) for resource, ids in held.items()}


def call(socket: Path, method: str, request: str, answer: str) -> Any:  # noqa: ANN401 - the same
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        invoke = channel.unary_unary(
            f"/v1.PodResourcesLister/{method}",
            request_serializer=MESSAGES[request].SerializeToString,
            response_deserializer=MESSAGES[answer].FromString,
        )
        return invoke(MESSAGES[request](), timeout=10, wait_for_ready=True)
