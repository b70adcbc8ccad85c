"""Device assignments from the kubelet's replies: one `DeviceAssignment` per container and device.

GPUs and their parts have IDs that device plugins and the DRA driver assign:

GPU-<uuid>                              a GPU; NVIDIA k8s-device-plugin
MIG-<uuid>                              a MIG device
MIG-GPU-<uuid>/<gi>/<ci>                a MIG device on that GPU, before driver 470
...::<n>                                the n-th replica of any of the above (time-slicing or MPS)
nvidia<minor>[/gi<gi>][/vgpu<n>]        GKE's device plugin: the GPU, its MIG device, a replica
gpu-<minor>                             DRA driver gpu.nvidia.com (before PR 428, 2025: gpu-<index>)
gpu-<minor>-mig-<profile>-<profile id>-<start>      a MIG device of it
gpu-<minor>-mig-<profile id>-<start>-<size>         the same, before PR 852 (2026)

Sources: k8s-device-plugin internal/rm/devices.go; dcgm-exporter internal/pkg/transformation/kubernetes.go;
k8s-dra-driver-gpu cmd/gpu-kubelet-plugin/{deviceinfo,mig}.go, CanonicalName (all of NVIDIA).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.model.rules import FIXED, Rules
from gputally.shares.schemes import rule_of

if TYPE_CHECKING:
    from gputally.devices.kubelet.messages import ClaimResource, ContainerDevices, ContainerResources, PodResources

_UUID: Final = "[0-9A-Za-z-]+"
_NUMBER: Final = "[0-9]{1,9}"
_REPLICA: Final = f"(?:::(?P<replica>{_NUMBER}))?"
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        f"(?P<uuid>GPU-{_UUID}|MIG-(?!GPU-){_UUID}){_REPLICA}",
        f"MIG-(?P<uuid>GPU-{_UUID})/(?P<gi>{_NUMBER})/(?P<ci>{_NUMBER}){_REPLICA}",
        f"nvidia(?P<minor>{_NUMBER})(?:/gi(?P<gi>{_NUMBER}))?(?:/vgpu(?P<replica>{_NUMBER}))?",
        f"gpu-(?P<minor>{_NUMBER})",
        f"gpu-(?P<minor>{_NUMBER})-mig-(?P<profile>{_NUMBER})-(?P<start>{_NUMBER})-{_NUMBER}",
        f"gpu-(?P<minor>{_NUMBER})-mig-[0-9a-z-]*[a-z][0-9a-z-]*-(?P<profile>{_NUMBER})-(?P<start>{_NUMBER})",
    )
)
DRIVERS: Final = frozenset({"gpu.nvidia.com"})
"""Excludes compute-domain.nvidia.com: its devices are channels between GPUs."""
_CDI: Final = re.compile(r"k8s\.(?P<driver>[^/=]+)/(?:device=|claim=[0-9a-f-]{36}-)(?P<name>.+)")
"""Name of a claim's CDI device: the device name alone, or prefixed with the claim's UID.

Source: NVIDIA/k8s-dra-driver-gpu cmd/gpu-kubelet-plugin/cdi.go, GetStandardDevice and GetClaimDevice.
"""


class DeviceId(Struct, frozen=True, kw_only=True, gc=False):
    """The parsed device ID `text`. If its format is unknown, only `text` is set.

    `uuid` is the MIG device's if it has its own, else the GPU's; "" when `minor` identifies the device.
    `gi` and `ci` are the IDs of the GPU instance and the compute instance. The DRA driver reports `profile` (the ID of
    the GPU instance profile) and `start` (its first memory slice) instead.
    `replica` is the replica number on a shared device.
    """

    text: str
    uuid: str = ""
    minor: int | None = None
    gi: int | None = None
    ci: int | None = None
    profile: int | None = None
    start: int | None = None
    replica: int | None = None


def parse(device_id: str) -> DeviceId:
    """Parse `device_id`. Unknown formats raise no error."""
    for form in _FORMS:
        if match := form.fullmatch(device_id):
            fields = {name: value for name, value in match.groupdict().items() if value is not None}
            uuid = fields.pop("uuid", "")
            return DeviceId(text=device_id, uuid=uuid, **{name: int(value) for name, value in fields.items()})
    return DeviceId(text=device_id)


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
