"""Probe once which readings a device supports, and never query unsupported ones.

A device is probed again when it changes (library.DeviceChanged) and after NVML is reinitialised.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gputally.devices.nvml.activity import Activity, DriverTime, Rates, Samples, Silence, value_of
from gputally.devices.nvml.gpm import Gpm, GpmEfficiency, GpmSamples
from gputally.devices.nvml.library import DeviceChanged, Handle, Meaning, Nvml, meaning

Memory = Callable[[], tuple[int | None, int | None]]
"""Returns used and total bytes."""


def activity_of_gpu(nvml: Nvml, handle: Handle, since_us: int, interval_us: int, time: DriverTime) -> Activity:
    """The most accurate source of a whole GPU's utilisation: samples since `since_us`, reads every `interval_us`."""
    if Samples.supported(nvml, handle):
        return Samples(nvml, handle, since_us, time)
    if GpmSamples.supported(nvml, handle):
        return Gpm(nvml, handle, None)
    if nvml.supports(nvml.calls.nvmlDeviceGetUtilizationRates, handle):
        return Rates(nvml, handle, interval_us)
    return Silence()


def activity_of_instance(nvml: Nvml, handle: Handle, gi: int) -> Activity:
    """Utilisation source of GPU instance `gi` on GPU `handle`; only GPM supports instances."""
    if not GpmSamples.supported(nvml, handle):
        return Silence()
    return Gpm(nvml, handle, gi)


def efficiency_of(nvml: Nvml, handle: Handle, gi: int | None) -> GpmEfficiency | None:
    """The efficiency of a GPU or GPU instance; None if the GPU has no GPM counters."""
    return GpmEfficiency(nvml, handle, gi) if GpmSamples.supported(nvml, handle) else None


def memory_of(nvml: Nvml, handle: Handle) -> Memory:
    """A reader of used and total bytes. Used bytes exclude driver-reserved memory if the driver reports it separately.

    The reader raises DeviceChanged if the device no longer reports memory: its MIG device is gone.
    """
    call = nvml.calls.nvmlDeviceGetMemoryInfo
    for candidate in (partial(call, handle, version=nvml.calls.nvmlMemory_v2), partial(call, handle)):
        if nvml.ask(candidate) is not None:
            return partial(_memory, nvml, candidate)
    return _unknown


def _memory(nvml: Nvml, call: Callable[[], Any]) -> tuple[int | None, int | None]:
    info = nvml.expect(call)
    if info is None:
        raise DeviceChanged("NVML: the device no longer reports its memory")
    return info.used, info.total


def _unknown() -> tuple[None, None]:
    return None, None


class Fields:
    """The supported fields among `wanted` (NVML_FI_DEV_*), read in one call."""

    def __init__(self, nvml: Nvml, handle: Handle, wanted: Sequence[int]) -> None:
        self._nvml = nvml
        self._handle = handle
        call = nvml.calls.nvmlDeviceGetFieldValues
        answers = nvml.ask(call, handle, list(wanted)) or ()
        self._ids = [each.fieldId for each in answers if meaning(each.nvmlReturn) is not Meaning.UNSUPPORTED]

    def __contains__(self, field: int) -> bool:
        return field in self._ids

    def read(self) -> dict[int, int]:
        """Values by field, without fields that have none."""
        if not self._ids:
            return {}
        answers = self._nvml.ask(self._nvml.calls.nvmlDeviceGetFieldValues, self._handle, self._ids) or ()
        return {each.fieldId: int(value_of(each.valueType, each.value)) for each in answers if not each.nvmlReturn}
