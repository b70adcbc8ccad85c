"""Who holds what, from the kubelet's replies: one `DeviceAssignment` for each container and device."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.devices.kubelet.device_ids import DeviceId, parse
from gputally.model.rules import FIXED, Rules
from gputally.shares.schemes import rule_of

if TYPE_CHECKING:  # the simulator's agents have holdings without messages, and need no protobuf
    from gputally.devices.kubelet.messages import (
        ClaimResource,
        ContainerDevices,
        ContainerResources,
        PodResources,
    )

DRIVERS: Final = frozenset({"gpu.nvidia.com"})
"""Not compute-domain.nvidia.com: its devices are channels between GPUs."""
_CDI: Final = re.compile(r"k8s\.(?P<driver>[^/=]+)/(?:device=|claim=[0-9a-f-]{36}-)(?P<name>.+)")
"""What a claim's CDI device is called: by its name alone, or after the claim's UID.

Source: NVIDIA/k8s-dra-driver-gpu cmd/gpu-kubelet-plugin/cdi.go, GetStandardDevice and GetClaimDevice.
"""


class Wanted(Struct, frozen=True, kw_only=True):
    """Which resources of device plugins, by rule or by name, and which DRA drivers give GPUs."""

    rules: Rules = Rules()
    names: frozenset[str] = frozenset()
    drivers: frozenset[str] = DRIVERS

    def and_names(self, names: Iterable[str]) -> "Wanted":
        """These and further resources of device plugins."""
        return replace(self, names=self.names.union(names))

    def has(self, resource: str) -> bool:
        """Whether `resource` of a device plugin is one."""
        return resource in self.names or rule_of(resource, self.rules) is not None

    def unit(self, resource: str) -> int:
        """µGPU of one unit of `resource`, where a rule fixes it; else 0, and its device tells."""
        rule = rule_of(resource, self.rules)
        return rule.weight if rule and rule.weighing == FIXED else 0


NVIDIA: Final = Wanted()


class DeviceAssignment(Struct, frozen=True, kw_only=True, gc=False):
    """A container that has a device, from a device plugin (`resource`) or by a claim (`claim`, `driver`, `pool`).

    What does not apply is "". `claim` is `namespace/name`; other pods may hold it too. `pool` is unknown with kubelets
    before 1.31. The pod may have ended, as kubelets before 1.34 list such pods too. `unit` is what one device weighs in
    µGPU, 0 where that follows from the device.
    """

    namespace: str
    pod: str
    container: str
    device: DeviceId
    resource: str = ""
    claim: str = ""
    driver: str = ""
    pool: str = ""
    unit: int = 0


def assignments(pods: "Iterable[PodResources]", wanted: Wanted = NVIDIA) -> tuple[DeviceAssignment, ...]:
    """What is held of what is `wanted`, sorted; a pod that is listed twice and a device of two pods are there twice."""
    return tuple(sorted((each for pod in pods for each in _of_pod(pod, wanted)), key=_rank))


def device_ids(devices: "Iterable[ContainerDevices]", wanted: Wanted = NVIDIA) -> Mapping[str, frozenset[str]]:
    """The ids of the devices that are `wanted`, by resource."""
    found: dict[str, frozenset[str]] = {}
    for some in devices:
        if wanted.has(some.resource_name):
            found[some.resource_name] = found.get(some.resource_name, frozenset()).union(some.device_ids)
    return found


def _rank(assignment: DeviceAssignment) -> tuple[str, ...]:
    owner = (assignment.namespace, assignment.pod, assignment.container)
    return (*owner, assignment.resource, assignment.claim, assignment.driver, assignment.pool, assignment.device.text)


def _of_pod(pod: "PodResources", wanted: Wanted) -> Iterator[DeviceAssignment]:
    for container in pod.containers:
        yield from _of_plugins(pod, container, wanted)
        yield from _of_claims(pod, container, wanted)


def _of_plugins(pod: "PodResources", container: "ContainerResources", wanted: Wanted) -> Iterator[DeviceAssignment]:
    devices = (each for each in container.devices if wanted.has(each.resource_name))
    named = ((each.resource_name, device_id) for each in devices for device_id in each.device_ids)
    for resource, device_id in dict.fromkeys(named):  # a device is told once for each of its NUMA nodes
        yield DeviceAssignment(
            namespace=pod.namespace,
            pod=pod.name,
            container=container.name,
            resource=resource,
            device=parse(device_id),
            unit=wanted.unit(resource),
        )


def _of_claims(pod: "PodResources", container: "ContainerResources", wanted: Wanted) -> Iterator[DeviceAssignment]:
    for claim in container.dynamic_resources:
        for resource in claim.claim_resources:
            for driver, device in _named(resource):
                if driver in wanted.drivers:
                    yield DeviceAssignment(
                        namespace=pod.namespace,
                        pod=pod.name,
                        container=container.name,
                        device=parse(device),
                        claim=f"{claim.claim_namespace}/{claim.claim_name}",
                        driver=driver,
                        pool=resource.pool_name,
                    )


def _named(resource: "ClaimResource") -> Iterable[tuple[str, str]]:
    """The (driver, device name) of each device, which may have several CDI names.

    Beside a device name the CDI names are of no use: kubelets repeat those of the devices before it in the claim.
    Source: k8s.io/kubernetes pkg/kubelet/cm/container_manager_linux.go, GetDynamicResources.
    """
    if resource.device_name:
        return [(resource.driver_name, resource.device_name)]
    names = (_CDI.fullmatch(device.name) for device in resource.cdi_devices)
    return dict.fromkeys((name["driver"], name["name"]) for name in names if name)
