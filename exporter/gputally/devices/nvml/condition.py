"""Condition of a physical GPU: power and energy at every reading, slow values less often."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from gputally.devices.nvml.capabilities import Fields
from gputally.devices.nvml.library import Handle, Nvml
from gputally.model.devices import GpuCondition

ENERGY: Final = 83
POWER_AVERAGE: Final = 185
"""Average over the last second, for the GPU alone and not its module: fields are queried with scope 0."""
THROTTLED: Final[Mapping[int, str]] = {
    74: "sw_power_cap",
    76: "sync_boost",
    269: "sw_thermal",
    270: "hw_thermal",
    271: "hw_power_brake",
}
"""Fields that count throttled time in ns. Source: nvml.h, NVML_FI_DEV_CLOCKS_EVENT_REASON_*."""
REASONS: Final[Mapping[int, str]] = {
    0x1: "gpu_idle",
    0x2: "applications_clocks",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
    0x100: "display_clocks",
}
"""Source: nvml.h, nvmlClocksEventReason*."""


class Conditions:
    """Condition of GPU `handle`. Slow values are queried at every `slow_every`-th reading."""

    def __init__(self, nvml: Nvml, handle: Handle, slow_every: int) -> None:
        calls = nvml.calls
        self._fields = Fields(nvml, handle, (ENERGY, POWER_AVERAGE))
        energy, power = (
            partial(calls.nvmlDeviceGetTotalEnergyConsumption, handle),
            partial(calls.nvmlDeviceGetPowerUsage, handle),
        )
        self._energy = nvml.gauge() if ENERGY in self._fields else nvml.gauge(energy)
        self._power = nvml.gauge() if POWER_AVERAGE in self._fields else nvml.gauge(power)
        self._slow = _SlowValues(nvml, handle)
        self._slow_every = slow_every
        self._readings = 0
        self._slow_values: dict[str, Any] = {}

    def read(self) -> GpuCondition:
        """Blocks; raises as Nvml.ask does."""
        if self._readings % self._slow_every == 0:
            self._slow_values = self._slow.read()
        self._readings += 1
        fields = self._fields.read()
        energy, power = fields.get(ENERGY), fields.get(POWER_AVERAGE)
        return GpuCondition(
            power=self._power() if power is None else power,
            energy=self._energy() if energy is None else energy,
            **self._slow_values,
        )


class _SlowValues:
    """Values that change slowly."""

    def __init__(self, nvml: Nvml, handle: Handle) -> None:
        calls = nvml.calls
        self._temperature = nvml.gauge(partial(calls.nvmlDeviceGetTemperature, handle, calls.NVML_TEMPERATURE_GPU))
        self._sm_clock = nvml.gauge(partial(calls.nvmlDeviceGetClockInfo, handle, calls.NVML_CLOCK_SM))
        self._memory_clock = nvml.gauge(partial(calls.nvmlDeviceGetClockInfo, handle, calls.NVML_CLOCK_MEM))
        self._power_limit = nvml.gauge(partial(calls.nvmlDeviceGetEnforcedPowerLimit, handle))
        self._reasons = nvml.gauge(
            partial(calls.nvmlDeviceGetCurrentClocksEventReasons, handle),
            partial(calls.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
        )
        self._throttled = Fields(nvml, handle, tuple(THROTTLED))
        errors = partial(calls.nvmlDeviceGetTotalEccErrors, handle)
        aggregate = calls.NVML_AGGREGATE_ECC
        self._corrected = nvml.gauge(partial(errors, calls.NVML_MEMORY_ERROR_TYPE_CORRECTED, aggregate))
        self._uncorrected = nvml.gauge(partial(errors, calls.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, aggregate))
        self._rows = nvml.gauge(partial(calls.nvmlDeviceGetRemappedRows, handle))

    def read(self) -> dict[str, Any]:
        """Keyword arguments for GpuCondition."""
        return {
            "temperature": self._temperature(),
            "sm_clock": self._sm_clock(),
            "memory_clock": self._memory_clock(),
            "power_limit": self._power_limit(),
            "throttle_reasons": reasons_of(self._reasons()),
            "throttled": tuple((THROTTLED[field], ns) for field, ns in self._throttled.read().items()),
            "ecc_corrected": self._corrected(),
            "ecc_uncorrected": self._uncorrected(),
            **self._rows_of(),
        }

    def _rows_of(self) -> dict[str, Any]:
        rows = self._rows()
        if rows is None:
            return {}
        corrected, uncorrected, pending, failed = rows
        return {
            "rows_remapped_correctable": corrected,
            "rows_remapped_uncorrectable": uncorrected,
            "rows_pending": bool(pending),
            "rows_failed": bool(failed),
        }


def reasons_of(mask: int | None) -> frozenset[str] | None:
    """Names of the bits set in `mask`; unknown bits are ignored."""
    if mask is None:
        return None
    return frozenset(name for bit, name in REASONS.items() if mask & bit)
