"""Account the time between two readings of a GPU by state and assignment, and its memory by assignment."""

from collections.abc import Iterator, Mapping
from typing import Final

from gputally.metering.assignment_meter import hour_of
from gputally.metering.attribution import memory
from gputally.metering.energy import GpuTimeEntry
from gputally.metering.gpu_sums import GpuSums
from gputally.metering.layout import Layout, Slot
from gputally.metering.timeline import Interval, Period, Timeline
from gputally.model.devices import Part
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

MAX_MEMORY_GAP_US: Final = 60 * US_PER_SECOND
"""Memory is unknown between readings further apart than this."""


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
