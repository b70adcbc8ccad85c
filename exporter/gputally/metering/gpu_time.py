"""Account the time between two readings of a GPU: its states, and the utilisation and memory of each assignment."""

from collections.abc import Iterator, Mapping
from typing import Final

from gputally.metering.attribution import Division, Layout, Slot, divided, division, memory
from gputally.metering.energy import GpuTimeEntry
from gputally.metering.sums import GpuSums, hour_of
from gputally.metering.timeline import Interval, Period, Timeline
from gputally.model.devices import BUSY, Part, Source
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

MAX_MEMORY_GAP_US: Final = 60 * US_PER_SECOND
"""Memory is unknown between readings further apart than this."""
MAX_DELAY_US: Final = 10 * US_PER_SECOND
"""How late the driver may report utilisation. Later values are ignored, so that the watermark advances."""


class StateAccounting:
    """Accounts the time between two readings, at `from_us` and `to_us`; the memory is that of the second reading."""

    def __init__(self, from_us: int, to_us: int, *, timeline: Timeline, sums: GpuSums) -> None:
        self.entries: list[GpuTimeEntry] = []
        """Allocated and unallocated GPU-time."""
        self._from_us = from_us
        self._to_us = to_us
        self._timeline = timeline
        self._sums = sums

    def account(self, layout: Layout, parts: Mapping[str, Part]) -> None:
        """Divide the time among states and assignments; `parts` are the parts of the second reading, by UUID."""
        memory_known = self._to_us - self._from_us <= MAX_MEMORY_GAP_US
        for slot in layout.slots.values():
            part = parts.get(slot.uuid) if memory_known else None
            for interval in self._timeline.intervals(slot.uuid, self._from_us, self._to_us):
                self._account_interval(slot, interval, part)
        if layout.unsliced:
            for from_us, to_us in _hours(self._from_us, self._to_us):
                unsliced = layout.unsliced * (to_us - from_us)
                self._sums.states.unsliced += unsliced
                self.entries.append(GpuTimeEntry(None, from_us, to_us, unsliced))

    def _account_interval(self, slot: Slot, interval: Interval, part: Part | None) -> None:
        from_us, to_us, period = interval
        rest = slot.weight * (to_us - from_us)
        states = self._sums.states
        if period is None:
            states.unknown += rest
        else:
            rest -= self._account_allocated(interval, period, slot.weight)
            states.free += rest if period.offered else 0
            states.unhealthy += 0 if period.offered else rest
            if period.allocations:
                _account_memory(interval, period, slot.weight, part)
        if rest:
            self.entries.append(GpuTimeEntry(None, from_us, to_us, rest))

    def _account_allocated(self, interval: Interval, period: Period, weight: int) -> int:
        """Add allocated GPU-time to the assignments; return the sum."""
        allocated = 0
        for assignment, share in zip(period.assignments, period.shares_of(weight), strict=True):
            gpu_time = share * (interval.to_us - interval.from_us)
            assignment.add_allocated(gpu_time)
            self.entries.append(GpuTimeEntry(assignment, interval.from_us, interval.to_us, gpu_time))
            allocated += gpu_time
        self._sums.states.held += allocated
        return allocated


def _account_memory(interval: Interval, period: Period, weight: int, part: Part | None) -> None:
    shares = period.shares_of(weight)
    found = memory(period.allocations, shares, part.processes, part.memory_used) if part else None
    for index, assignment in enumerate(period.assignments):
        if found is None:
            assignment.totals.memory_now = None
        else:
            assignment.add_memory(interval.from_us, interval.to_us, memory=found[index])


def _hours(from_us: int, to_us: int) -> Iterator[tuple[int, int]]:
    while from_us < to_us:
        until_us = min(to_us, hour_of(from_us) + US_PER_HOUR)
        yield from_us, until_us
        from_us = until_us


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
