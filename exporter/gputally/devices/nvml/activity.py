"""How busy a device was since the last reading, from one of three sources; GPM has a file of its own."""

from ctypes import Union
from typing import Final, Protocol

from gputally.devices.nvml.driver_time import DriverTime
from gputally.devices.nvml.library import Handle, Nvml
from gputally.model.measured.device import BUSY, Source, Span

PER_CENT: Final = BUSY // 100
GAP_US: Final = 2_000_000
"""Between samples further apart than this the driver was not looking."""
USUAL_PERIOD_US: Final = 1_000_000 // 6
_VALUES: Final = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""The field of NVML's union of values, by the type that comes with it."""


class Activity(Protocol):
    """A source of utilisation of one device. `until_us`: what lies before is told."""

    source: Source
    until_us: int

    def read(self, now_us: int) -> tuple[Span, ...]:
        """What was not told yet. Blocks; DeviceChanged if there is no more of it."""

    def close(self) -> None:
        """Give back what the driver lent."""


class Silence:
    """The device tells nothing."""

    source = Source.NONE
    until_us = 0

    def read(self, _now_us: int) -> tuple[Span, ...]:
        """Nothing."""
        return ()

    def close(self) -> None:
        """Nothing was lent."""


class Samples:
    """The driver's ring buffer, which holds some twenty seconds: what is newer than `since_us`.

    A sample's timestamp ends its period, which began at the one before it. After a gap it is as long as others were.
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
        """Whether there are samples; a buffer that is empty stays so on some GPUs."""
        return nvml.ask(nvml.calls.nvmlDeviceGetSamples, handle, nvml.calls.NVML_GPU_UTILIZATION_SAMPLES, 0) is not None

    def read(self, now_us: int) -> tuple[Span, ...]:
        """What the driver sampled since."""
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
            if at_us <= now_us:  # what is later is told next time; or is from before the clock was set back
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
        """Nothing was lent."""


class Rates:
    """The last value, taken for the whole time since the last reading, if that is at most three intervals ago."""

    source = Source.RATES

    def __init__(self, nvml: Nvml, handle: Handle, interval_us: int) -> None:
        self.until_us = 0
        self._nvml = nvml
        self._handle = handle
        self._longest_us = 3 * interval_us

    def read(self, now_us: int) -> tuple[Span, ...]:
        """One span, or none after a pause."""
        rates = self._nvml.expect(self._nvml.calls.nvmlDeviceGetUtilizationRates, self._handle)
        from_us, self.until_us = self.until_us, now_us
        if rates is None or not 0 < now_us - from_us <= self._longest_us:
            return ()
        return (Span(from_us, now_us, min(rates.gpu * PER_CENT, BUSY)),)

    def close(self) -> None:
        """Nothing was lent."""


def value_of(kind: int, value: Union) -> int | float:
    """The number in NVML's union `value`, of the type `kind` (nvmlValueType_t)."""
    number: int | float = getattr(value, _VALUES[kind])
    return number
