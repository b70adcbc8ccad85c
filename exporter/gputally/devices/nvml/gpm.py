"""How busy a GPU or a GPU instance was, by its own counters: between the last reading and this one.

Two samples are kept and filled in turn, so that nothing sleeps between them. Hopper and later.
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
"""Closer samples tell nothing reliable."""


class Gpm:
    """Of the GPU `handle`, or of its GPU instance `gi`, whose compute instances share one answer."""

    source = Source.GPM

    def __init__(self, nvml: Nvml, handle: Handle, gi: int | None) -> None:
        calls = nvml.calls
        self.until_us = 0
        self._nvml = nvml
        self._take = (
            partial(calls.nvmlGpmSampleGet, handle) if gi is None else partial(calls.nvmlGpmMigSampleGet, handle, gi)
        )
        self._last = nvml.demand(calls.nvmlGpmSampleAlloc)
        self._next = nvml.demand(calls.nvmlGpmSampleAlloc)
        self._seeded = False

    @staticmethod
    def supported(nvml: Nvml, handle: Handle) -> bool:
        """Whether this GPU counts."""
        support = nvml.ask(nvml.calls.nvmlGpmQueryDeviceSupport, handle)
        return support is not None and bool(support.isSupportedDevice)

    def read(self, now_us: int) -> tuple[Span, ...]:
        """One span, or none where one of its ends is missing."""
        from_us = self.until_us
        if self._seeded and 0 <= now_us - from_us <= APART_US:
            return ()
        if self._nvml.ask(self._take, self._next) is None:
            self._seeded = False
            return ()
        percent = self._percent() if self._seeded and now_us > from_us else math.nan
        self._last, self._next = self._next, self._last
        self._seeded, self.until_us = True, now_us
        if not 0 <= percent <= 100:  # noqa: PLR2004 - percent; NaN is neither
            return ()
        return (Span(from_us, now_us, min(round(percent * PER_CENT), BUSY)),)

    def close(self) -> None:
        """Free both samples."""
        for sample in (self._last, self._next):
            try:
                self._nvml.ask(self._nvml.calls.nvmlGpmSampleFree, sample)
            except NvmlError:  # NVML forgot us, and the sample with us
                continue

    def _percent(self) -> float:
        """NaN where the two samples do not fit, as when the instance was made anew between them."""
        calls = self._nvml.calls
        query = calls.c_nvmlGpmMetricsGet_t(
            version=calls.NVML_GPM_METRICS_GET_VERSION, numMetrics=1, sample1=self._last, sample2=self._next
        )
        metric = query.metrics[0]
        metric.metricId = GRAPHICS_UTILISATION
        if self._nvml.ask(calls.nvmlGpmMetricsGet, query) is None or metric.nvmlReturn:
            return math.nan
        return float(metric.value)
