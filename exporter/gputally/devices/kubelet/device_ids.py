"""Parse the device IDs that device plugins and the DRA driver assign to GPUs and their parts.

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
from typing import Final

from msgspec import Struct


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


def parse(device_id: str) -> DeviceId:
    """Parse `device_id`. Unknown formats raise no error."""
    for form in _FORMS:
        if match := form.fullmatch(device_id):
            fields = {name: value for name, value in match.groupdict().items() if value is not None}
            uuid = fields.pop("uuid", "")
            return DeviceId(text=device_id, uuid=uuid, **{name: int(value) for name, value in fields.items()})
    return DeviceId(text=device_id)
