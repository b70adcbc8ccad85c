"""Device assignments from the kubelet's replies: one `DeviceAssignment` per container and device."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.devices.kubelet.device_ids import DeviceId, parse
from gputally.model.rules import FIXED, Rules
from gputally.shares.schemes import rule_of

if TYPE_CHECKING:  # the simulator's agents use assignments without messages and need no protobuf
    from gputally.devices.kubelet.messages import (
        ClaimResource,
        ContainerDevices,
        ContainerResources,
        PodResources,
    )

DRIVERS: Final = frozenset({"gpu.nvidia.com"})
"""Excludes compute-domain.nvidia.com: its devices are channels between GPUs."""
_CDI: Final = re.compile(r"k8s\.(?P<driver>[^/=]+)/(?:device=|claim=[0-9a-f-]{36}-)(?P<name>.+)")
"""Name of a claim's CDI device: the device name alone, or prefixed with the claim's UID.

Source: NVIDIA/k8s-dra-driver-gpu cmd/gpu-kubelet-plugin/cdi.go, GetStandardDevice and GetClaimDevice.
"""


class Wanted(Struct, frozen=True, kw_only=True):
    """The device plugin resources (by rule or by name) and the DRA drivers that provide GPUs."""

    rules: Rules = Rules()
    names: frozenset[str] = frozenset()
    drivers: frozenset[str] = DRIVERS

    def and_names(self, names: Iterable[str]) -> "Wanted":
        """A copy with additional device plugin resources."""
        return replace(self, names=self.names.union(names))

    def has(self, resource: str) -> bool:
        """Whether the device plugin resource `resource` provides GPUs."""
        return resource in self.names or rule_of(resource, self.rules) is not None

    def unit(self, resource: str) -> int:
        """µGPU of one unit of `resource` if a rule fixes it; otherwise 0, and the device determines it."""
        rule = rule_of(resource, self.rules)
        return rule.weight if rule and rule.weighing == FIXED else 0


NVIDIA: Final = Wanted()


class DeviceAssignment(Struct, frozen=True, kw_only=True, gc=False):
    """A device of a container, from a device plugin (`resource`) or a claim (`claim`, `driver`, `pool`).

    Fields that do not apply are "". `claim` is `namespace/name`; other pods may share it. `pool` is unknown with
    kubelets before 1.31. The pod may have terminated: kubelets before 1.34 list such pods too. `unit` is the weight of
    one device in µGPU, or 0 if the device determines it.
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
    """Assignments of `wanted` devices, sorted. Pods listed twice and devices shared by two pods appear twice."""
    return tuple(sorted((each for pod in pods for each in _pod_assignments(pod, wanted)), key=_sort_key))


def device_ids(devices: "Iterable[ContainerDevices]", wanted: Wanted = NVIDIA) -> Mapping[str, frozenset[str]]:
    """IDs of the `wanted` devices, by resource."""
    found: dict[str, frozenset[str]] = {}
    for entry in devices:
        if wanted.has(entry.resource_name):
            found[entry.resource_name] = found.get(entry.resource_name, frozenset()).union(entry.device_ids)
    return found


def _sort_key(assignment: DeviceAssignment) -> tuple[str, ...]:
    owner = (assignment.namespace, assignment.pod, assignment.container)
    return (*owner, assignment.resource, assignment.claim, assignment.driver, assignment.pool, assignment.device.text)


def _pod_assignments(pod: "PodResources", wanted: Wanted) -> Iterator[DeviceAssignment]:
    for container in pod.containers:
        yield from _plugin_assignments(pod, container, wanted)
        yield from _claim_assignments(pod, container, wanted)


def _plugin_assignments(
    pod: "PodResources", container: "ContainerResources", wanted: Wanted
) -> Iterator[DeviceAssignment]:
    devices = (each for each in container.devices if wanted.has(each.resource_name))
    named = ((each.resource_name, device_id) for each in devices for device_id in each.device_ids)
    for resource, device_id in dict.fromkeys(named):  # a device is listed once per NUMA node
        yield DeviceAssignment(
            namespace=pod.namespace,
            pod=pod.name,
            container=container.name,
            resource=resource,
            device=parse(device_id),
            unit=wanted.unit(resource),
        )


def _claim_assignments(
    pod: "PodResources", container: "ContainerResources", wanted: Wanted
) -> Iterator[DeviceAssignment]:
    for claim in container.dynamic_resources:
        for resource in claim.claim_resources:
            for driver, device in _device_names(resource):
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


def _device_names(resource: "ClaimResource") -> Iterable[tuple[str, str]]:
    """The (driver, device name) of each device. A device may have several CDI names.

    If there is a device name, ignore the CDI names: kubelets repeat those of earlier devices of the claim.
    Source: k8s.io/kubernetes pkg/kubelet/cm/container_manager_linux.go, GetDynamicResources.
    """
    if resource.device_name:
        return [(resource.driver_name, resource.device_name)]
    names = (_CDI.fullmatch(device.name) for device in resource.cdi_devices)
    return dict.fromkeys((name["driver"], name["name"]) for name in names if name)
