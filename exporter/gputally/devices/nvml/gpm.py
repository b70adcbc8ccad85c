"""GPM counters of a GPU or GPU instance (Hopper and later): utilisation, and how well it uses the hardware.

Two sample buffers alternate, so that no reading waits between two samples.
Source: nvml.h, nvmlGpmMetricsGet; nvmlGpmMigSampleGet.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

from gputally.devices.nvml.activity import PER_CENT
from gputally.devices.nvml.library import Handle, Nvml
from gputally.errors import NvmlError
from gputally.model.devices import BUSY, Efficiency, Source, Span

GRAPHICS_UTILISATION: Final = 1
SM_ACTIVE: Final = 2
SM_OCCUPANCY: Final = 3
TENSOR_ACTIVE: Final = 5
DRAM_ACTIVE: Final = 10
APART_US: Final = 100_000
"""Samples closer together are unreliable."""


class GpmSamples:
    """Pairs of successive samples of GPU `handle` or its GPU instance `gi`."""

    def __init__(self, nvml: Nvml, handle: Handle, gi: int | None) -> None:
        calls = nvml.calls
        self.until_us = 0
        self._nvml = nvml
        self._sample = (
            partial(calls.nvmlGpmSampleGet, handle) if gi is None else partial(calls.nvmlGpmMigSampleGet, handle, gi)
        )
        self._last = nvml.demand(calls.nvmlGpmSampleAlloc)
        self._spare = nvml.demand(calls.nvmlGpmSampleAlloc)
        self._seeded = False

    @staticmethod
    def supported(nvml: Nvml, handle: Handle) -> bool:
        """Whether this GPU supports GPM."""
        support = nvml.ask(nvml.calls.nvmlGpmQueryDeviceSupport, handle)
        return support is not None and bool(support.isSupportedDevice)

    def read(self, now_us: int, metrics: Sequence[int]) -> tuple[int, list[float]]:
        """The start of the time since the previous sample, and the metrics over it in percent.

        They are NaN if there is no previous sample or it does not match, as when the instance was recreated, and empty
        if it is too early for a sample.
        """
        from_us, unknown = self.until_us, [math.nan] * len(metrics)
        if self._seeded and 0 <= now_us - from_us <= APART_US:
            return from_us, []
        if self._nvml.ask(self._sample, self._spare) is None:
            self._seeded = False
            return from_us, []
        values = self._between(metrics) if self._seeded and now_us > from_us else unknown
        self._last, self._spare = self._spare, self._last
        self._seeded, self.until_us = True, now_us
        return from_us, values or unknown

    def close(self) -> None:
        """Free both samples."""
        for sample in (self._last, self._spare):
            try:
                self._nvml.ask(self._nvml.calls.nvmlGpmSampleFree, sample)
            except NvmlError:  # NVML lost its state, and the sample with it
                continue

    def _between(self, metrics: Sequence[int]) -> list[float]:
        """The metrics between both samples; NaN for each that this GPU does not support, empty without an answer."""
        calls = self._nvml.calls
        query = calls.c_nvmlGpmMetricsGet_t(
            version=calls.NVML_GPM_METRICS_GET_VERSION,
            numMetrics=len(metrics),
            sample1=self._last,
            sample2=self._spare,
        )
        for place, metric in enumerate(metrics):
            query.metrics[place].metricId = metric
        if self._nvml.ask(calls.nvmlGpmMetricsGet, query) is None:
            return []
        found = query.metrics[: len(metrics)]
        return [math.nan if metric.nvmlReturn else float(metric.value) for metric in found]


class Gpm:
    """Utilisation, which the compute instances of a GPU instance share."""

    source = Source.GPM

    def __init__(self, nvml: Nvml, handle: Handle, gi: int | None) -> None:
        self.until_us = 0
        self._samples = GpmSamples(nvml, handle, gi)

    def read(self, now_us: int) -> tuple[Span, ...]:
        """One span, or none if its first or last sample is missing."""
        from_us, values = self._samples.read(now_us, [GRAPHICS_UTILISATION])
        self.until_us = self._samples.until_us
        if not values or not is_percent(values[0]):
            return ()
        return (Span(from_us, now_us, min(round(values[0] * PER_CENT), BUSY)),)

    def close(self) -> None:
        """Free the samples."""
        self._samples.close()


class GpmEfficiency:
    """Running sums of the efficiency metrics, from samples of its own at its own interval."""

    def __init__(self, nvml: Nvml, handle: Handle, gi: int | None) -> None:
        self.sums = Efficiency()
        self._samples = GpmSamples(nvml, handle, gi)

    def read(self, now_us: int) -> None:
        """Add the time since the last reading, if all metrics are known."""
        from_us, values = self._samples.read(now_us, [SM_ACTIVE, SM_OCCUPANCY, TENSOR_ACTIVE, DRAM_ACTIVE])
        if values and all(map(is_percent, values)):
            self.sums = self.sums.plus(now_us - from_us, [round(value * PER_CENT) for value in values])

    def close(self) -> None:
        """Free the samples."""
        self._samples.close()


def is_percent(value: float) -> bool:
    """Whether the value is possible; NaN is not."""
    return 0 <= value <= 100  # noqa: PLR2004 - percent
