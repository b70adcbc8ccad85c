"""MIG layout of a GPU. Indices of MIG devices have gaps, and their handles become stale."""

import re
from collections.abc import Iterator
from ctypes import c_void_p, cast
from typing import Final

from msgspec import Struct

from gputally.devices.nvml.library import Handle, Nvml
from gputally.model.rules import Rules
from gputally.model.units import GPU
from gputally.shares.gfd import MEMORY, PRODUCT
from gputally.shares.schemes import covered

_NAME: Final = re.compile(r"MIG (\S+)$")
_MIB_PER_GB: Final = 1024


class Device(Struct, frozen=True, kw_only=True, gc=False):
    """A whole GPU or a MIG device; `address` is the address that its handle (`nvmlDevice_t`) points to."""

    uuid: str
    address: int
    weight: int = GPU
    profile: str = ""
    gi: int | None = None
    ci: int | None = None
    placement: int | None = None


class MigLayout(Struct, frozen=True, kw_only=True):
    """The devices with utilisation and memory: the MIG devices by index if `mig` is on, else the GPU itself."""

    mig: bool
    devices: tuple[Device, ...]


def layout_of(nvml: Nvml, handle: Handle, uuid: str, model: str, rules: Rules) -> MigLayout:
    """The current layout of GPU `handle`, with device weights from `rules`. Blocks; raises like Nvml.ask."""
    mode = nvml.ask(nvml.calls.nvmlDeviceGetMigMode, handle)
    if mode is None or mode[0] != nvml.calls.NVML_DEVICE_MIG_ENABLE:
        return MigLayout(mig=False, devices=(Device(uuid=uuid, address=address(handle)),))
    return MigLayout(mig=True, devices=tuple(_devices(nvml, handle, model, rules)))


def handle_at(nvml: Nvml, address: int) -> Handle:
    """The handle for a device's `address`."""
    handle: Handle = cast(address, nvml.calls.c_nvmlDevice_t)
    return handle


def weight_of(profile: str, model: str, rules: Rules, *, memory_mib: int = 0) -> int:
    """µGPU of a MIG device with `profile` on a GPU of `model` with `memory_mib` of memory (0: unknown).

    It equals the weight of the profile's resource on a node with the labels of GPU Feature Discovery.
    """
    labels = ((PRODUCT, model), (MEMORY, str(memory_mib)))
    return covered([(f"nvidia.com/mig-{profile}", 1)], labels, rules)


def _devices(nvml: Nvml, parent: Handle, model: str, rules: Rules) -> Iterator[Device]:
    calls = nvml.calls
    memory = nvml.ask(calls.nvmlDeviceGetMemoryInfo, parent)
    memory_mib = memory.total >> 20 if memory else 0
    for index in range(nvml.ask(calls.nvmlDeviceGetMaxMigDeviceCount, parent) or 0):
        handle = nvml.ask(calls.nvmlDeviceGetMigDeviceHandleByIndex, parent, index)
        uuid = handle and nvml.ask(calls.nvmlDeviceGetUUID, handle)
        if not handle or not uuid:  # an index gap, or just destroyed
            continue
        gi = nvml.ask(calls.nvmlDeviceGetGpuInstanceId, handle)
        profile = _profile(nvml, handle)
        yield Device(
            uuid=uuid,
            address=address(handle),
            weight=weight_of(profile, model, rules, memory_mib=memory_mib),
            profile=profile,
            gi=gi,
            ci=nvml.ask(calls.nvmlDeviceGetComputeInstanceId, handle),
            placement=_placement(nvml, parent, gi),
        )


def _profile(nvml: Nvml, handle: Handle) -> str:
    """Profile such as `1g.10gb`, from the device's name or else its size; "" if both are unknown."""
    if named := _NAME.search(nvml.ask(nvml.calls.nvmlDeviceGetName, handle) or ""):
        return named[1]
    size = nvml.ask(nvml.calls.nvmlDeviceGetAttributes, handle)
    if size is None:
        return ""
    whole, part = size.gpuInstanceSliceCount, size.computeInstanceSliceCount
    name = f"{whole}g.{round(size.memorySizeMB / _MIB_PER_GB)}gb"
    return name if part == whole else f"{part}c.{name}"


def _placement(nvml: Nvml, parent: Handle, gi: int | None) -> int | None:
    """First memory slice of the GPU instance. Only privileged processes can read it."""
    instance = None if gi is None else nvml.ask(nvml.calls.nvmlDeviceGetGpuInstanceById, parent, gi)
    info = None if instance is None else nvml.ask(nvml.calls.nvmlGpuInstanceGetInfo, instance)
    return None if info is None else int(info.placement.start)


def address(handle: Handle) -> int:
    """The address `handle` points to. Handles with the same address refer to the same device."""
    return cast(handle, c_void_p).value or 0
