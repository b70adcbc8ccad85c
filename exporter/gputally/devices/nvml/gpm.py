"""Utilisation of a GPU or GPU instance since the last reading, from its GPM counters (Hopper and later).

Two sample buffers alternate, so that no reading waits between two samples.
Source: nvml.h, nvmlGpmMetricsGet; nvmlGpmMigSampleGet.
"""

import math
from functools import partial
from typing import Final

from gputally.devices.nvml.activity import PER_CENT
from gputally.devices.nvml.library import Handle, Nvml
from gputally.errors import NvmlError
from gputally.model.measured.device import BUSY, Source, Span

GRAPHICS_UTILISATION: Final = 1
APART_US: Final = 100_000
"""Samples closer together are unreliable."""


class Gpm:
    """Utilisation of GPU `handle` or its GPU instance `gi`, whose compute instances share one value."""

    source = Source.GPM

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

    def read(self, now_us: int) -> tuple[Span, ...]:
        """One span, or none if its first or last sample is missing."""
        from_us = self.until_us
        if self._seeded and 0 <= now_us - from_us <= APART_US:
            return ()
        if self._nvml.ask(self._sample, self._spare) is None:
            self._seeded = False
            return ()
        percent = self._percent() if self._seeded and now_us > from_us else math.nan
        self._last, self._spare = self._spare, self._last
        self._seeded, self.until_us = True, now_us
        if not 0 <= percent <= 100:  # noqa: PLR2004 - percent; NaN is neither
            return ()
        return (Span(from_us, now_us, min(round(percent * PER_CENT), BUSY)),)

    def close(self) -> None:
        """Free both samples."""
        for sample in (self._last, self._spare):
            try:
                self._nvml.ask(self._nvml.calls.nvmlGpmSampleFree, sample)
            except NvmlError:  # NVML lost its state, and the sample with it
                continue

    def _percent(self) -> float:
        """Utilisation in percent; NaN if the samples do not match, as when the instance was recreated in between."""
        calls = self._nvml.calls
        query = calls.c_nvmlGpmMetricsGet_t(
            version=calls.NVML_GPM_METRICS_GET_VERSION, numMetrics=1, sample1=self._last, sample2=self._spare
        )
        metric = query.metrics[0]
        metric.metricId = GRAPHICS_UTILISATION
        if self._nvml.ask(calls.nvmlGpmMetricsGet, query) is None or metric.nvmlReturn:
            return math.nan
        return float(metric.value)
