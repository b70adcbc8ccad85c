"""Device utilisation since the last reading, from one of three sources: samples, rates, or GPM (gpm.py)."""

from collections.abc import Callable
from ctypes import Union
from typing import Final, Protocol

from gputally.devices.nvml.library import Handle, Nvml
from gputally.model.devices import BUSY, Source, Span

JITTER_US: Final = 200_000
"""Tolerated change of the offset; a larger one means that the clock was set."""
PER_CENT: Final = BUSY // 100
GAP_US: Final = 2_000_000
"""A longer interval between samples means that the driver did not sample."""
USUAL_PERIOD_US: Final = 1_000_000 // 6
_VALUES: Final = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Field names of NVML's value union, indexed by value type."""


class DriverTime:
    """The driver uses the node's `clock` (µs), which may be set at any time; readings use a clock that never is."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._offset_us = 0

    def ahead_us(self, now_us: int) -> int:
        """How far the driver's timestamps are ahead of `now_us`, the time of the reading."""
        offset_us = self._clock() - now_us
        if abs(offset_us - self._offset_us) > JITTER_US:
            self._offset_us = offset_us
        return self._offset_us


class Activity(Protocol):
    """A source of one device's utilisation, which is already reported up to `until_us`."""

    source: Source
    until_us: int

    def read(self, now_us: int) -> tuple[Span, ...]:
        """Utilisation not yet reported. Blocks; raises DeviceChanged if the device no longer supports it."""

    def close(self) -> None:
        """Release driver resources."""


class Silence:
    """A device that reports no utilisation."""

    source = Source.NONE
    until_us = 0

    def read(self, _now_us: int) -> tuple[Span, ...]:
        """Return no spans."""
        return ()

    def close(self) -> None:
        """No driver resources to release."""


class Samples:
    """Samples newer than `since_us` from the driver's ring buffer, which holds about 20 seconds.

    A sample covers the time since the previous sample. After a gap, it covers one period of the usual length.
    """

    source = Source.SAMPLES

    def __init__(self, nvml: Nvml, handle: Handle, since_us: int, time: DriverTime) -> None:
        self.until_us = since_us
        self._nvml = nvml
        self._handle = handle
        self._time = time
        self._period_us = USUAL_PERIOD_US

    @staticmethod
    def supported(nvml: Nvml, handle: Handle) -> bool:
        """Whether there are samples. On some GPUs the buffer always stays empty."""
        return nvml.ask(nvml.calls.nvmlDeviceGetSamples, handle, nvml.calls.NVML_GPU_UTILIZATION_SAMPLES, 0) is not None

    def read(self, now_us: int) -> tuple[Span, ...]:
        """Samples since the last reading."""
        calls, ahead_us = self._nvml.calls, self._time.ahead_us(now_us)
        answer = self._nvml.expect(
            calls.nvmlDeviceGetSamples, self._handle, calls.NVML_GPU_UTILIZATION_SAMPLES, self.until_us + ahead_us
        )
        if answer is None:
            return ()
        kind, samples = answer
        spans: list[Span] = []
        for sample in samples:
            at_us = sample.timeStamp - ahead_us
            if at_us <= now_us:  # later samples wait for the next reading, or date from before the clock was set back
                self._add(spans, at_us, value_of(kind, sample.sampleValue))
        return tuple(spans)

    def _add(self, spans: list[Span], at_us: int, percent: float) -> None:
        length_us = at_us - self.until_us
        if length_us <= 0:
            return
        if length_us <= GAP_US:
            self._period_us = length_us
        from_us = max(self.until_us, at_us - min(length_us, self._period_us))
        self.until_us = at_us
        if not 0 <= percent <= 100:  # noqa: PLR2004 - percent
            return
        busy = round(percent * PER_CENT)
        if spans and spans[-1].busy == busy and spans[-1].to_us == from_us:
            from_us = spans.pop().from_us
        spans.append(Span(from_us, at_us, busy))

    def close(self) -> None:
        """No driver resources to release."""


class Rates:
    """The last value, applied to the time since the last reading if that is at most three intervals ago."""

    source = Source.RATES

    def __init__(self, nvml: Nvml, handle: Handle, interval_us: int) -> None:
        self.until_us = 0
        self._nvml = nvml
        self._handle = handle
        self._max_span_us = 3 * interval_us

    def read(self, now_us: int) -> tuple[Span, ...]:
        """One span, or none after a pause."""
        rates = self._nvml.expect(self._nvml.calls.nvmlDeviceGetUtilizationRates, self._handle)
        from_us, self.until_us = self.until_us, now_us
        if rates is None or not 0 < now_us - from_us <= self._max_span_us:
            return ()
        return (Span(from_us, now_us, min(rates.gpu * PER_CENT, BUSY)),)

    def close(self) -> None:
        """No driver resources to release."""


def value_of(kind: int, value: Union) -> int | float:
    """The number in NVML's union `value`, whose type is `kind` (nvmlValueType_t)."""
    number: int | float = getattr(value, _VALUES[kind])
    return number
