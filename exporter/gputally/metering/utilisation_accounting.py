"""Attribute the utilisation of one part of a GPU to its assignments."""

from typing import Final

from gputally.metering.attribution import Division, divided, division
from gputally.metering.energy import GpuTimeEntry
from gputally.metering.gpu_sums import GpuSums
from gputally.metering.layout import Slot
from gputally.metering.timeline import Interval, Period, Timeline
from gputally.model.devices import BUSY, Part, Source
from gputally.model.units import US_PER_SECOND

MAX_DELAY_US: Final = 10 * US_PER_SECOND
"""How late the driver may report utilisation. Later values are ignored, so that the watermark advances."""


class UtilisationAccounting:
    """Accounts the utilisation of one part from one reading at `at_us`."""

    def __init__(self, part: Part, slot: Slot, *, at_us: int, sums: GpuSums) -> None:
        self.entries: list[GpuTimeEntry] = []
        """Attributed and unattributed usage."""
        self._part = part
        self._slot = slot
        self._at_us = at_us
        self._sums = sums
        self._last: tuple[Period, Division] | None = None

    def account(self, timeline: Timeline) -> None:
        """Attribute the utilisation and advance the watermark; ignore values before the watermark."""
        slot, at_us = self._slot, self._at_us
        for span in self._part.busy:
            from_us, to_us = max(span.from_us, slot.watermark_us), min(span.to_us, at_us)
            for interval in timeline.intervals(slot.uuid, from_us, to_us):
                self._account_interval(interval, min(max(0, span.busy), BUSY))
            slot.watermark_us = max(slot.watermark_us, to_us)
        slot.watermark_us = at_us if self._part.source is Source.NONE else max(slot.watermark_us, at_us - MAX_DELAY_US)

    def _account_interval(self, interval: Interval, busy: int) -> None:
        from_us, to_us, period = interval
        gpu_time = self._slot.weight * (to_us - from_us)
        used = gpu_time * busy // BUSY
        work = self._sums.work
        work.measured += gpu_time
        work.used += used
        if period is None:
            work.unknown += used
            unattributed = used
        else:
            unattributed = self._attribute(interval, period, used)
            self._sums.add_unattributed(from_us, unattributed)
        self.entries.append(GpuTimeEntry(None, from_us, to_us, unattributed))

    def _attribute(self, interval: Interval, period: Period, used: int) -> int:
        """Attribute `used` to the assignments; return the unattributed part."""
        amounts, unattributed = divided(used, self._division(period))
        shares = period.shares_of(self._slot.weight)
        for assignment, share, amount in zip(period.assignments, shares, amounts, strict=True):
            assignment.add_usage(interval.from_us, interval.to_us, share=share, used=amount)
            self.entries.append(GpuTimeEntry(assignment, interval.from_us, interval.to_us, amount))
        return unattributed

    def _division(self, period: Period) -> Division:
        """How to divide the usage in `period`, by the processes of the whole reading."""
        if self._last is None or self._last[0] is not period:
            shares = period.shares_of(self._slot.weight)
            self._last = (period, division(period.allocations, shares, self._part.processes))
        return self._last[1]
