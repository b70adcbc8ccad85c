"""Accounting of one physical GPU: its states, and the utilisation, memory and energy of each assignment."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gputally.metering.attribution import Division, Layout, Slot, divided, division, memory
from gputally.metering.energy import EnergyMeter, GpuTimeEntry, split_energy
from gputally.metering.sums import GpuSums, hour_of
from gputally.metering.timeline import Interval, Period, Timeline
from gputally.model.devices import BUSY, Part, Reading, Source
from gputally.model.units import GPU, US_PER_HOUR, US_PER_SECOND

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


_MOST_ACCURATE_FIRST = tuple(Source)


class GpuAccount:
    """Starts at the first reading, whose counter values are the baseline."""

    def __init__(self, reading: Reading) -> None:
        self.gpu = reading.gpu
        self.since_us = self.at_us = reading.at_us
        self.is_lost = False
        self.source = Source.NONE
        self.sums = GpuSums()
        self.layout = Layout()
        self._meter = EnergyMeter()
        self._energy_delta(reading)
        self._apply(reading)

    @property
    def watermark_us(self) -> int:
        """The time up to which all parts are accounted."""
        return self.layout.watermark_us(self.at_us)

    def read(self, reading: Reading, timeline: Timeline) -> bool:
        """Account up to the reading, or as far as its utilisation reaches; return whether the layout changed.

        An older reading is ignored. Energy used while the GPU was lost is unallocated.
        """
        if reading.at_us <= self.at_us:
            return False
        used: list[GpuTimeEntry] = []
        held: list[GpuTimeEntry] = []
        if self.is_lost:
            self._add_lost_time(reading.at_us)
            self.is_lost = False
            self.layout.restart(reading.at_us)
        else:
            held = self._account_states(reading, reading.at_us, timeline)
            used = self._account_utilisation(reading, timeline)
        self._account_energy(self._energy_delta(reading), used, held, at_us=reading.at_us)
        return self._apply(reading)

    def lost(self, at_us: int, timeline: Timeline) -> None:
        """The driver could not reach the GPU at `at_us`: pause its accounting until the next reading."""
        if at_us <= self.at_us:
            self.is_lost = True
        elif self.is_lost:
            self._add_lost_time(at_us)
        else:
            self._account_states(None, at_us, timeline)
            self.at_us = at_us
            self.is_lost = True

    def _apply(self, reading: Reading) -> bool:
        """Use the layout of an accounted reading from now on; return whether it changed."""
        self.gpu, self.at_us = reading.gpu, reading.at_us
        sources = [part.source for part in reading.parts]
        self.source = max(sources, key=_MOST_ACCURATE_FIRST.index, default=Source.NONE)
        return self.layout.update(reading.parts, at_us=reading.at_us)

    def _add_lost_time(self, at_us: int) -> None:
        self.sums.states.lost += GPU * (at_us - self.at_us)
        self.at_us = at_us

    def _account_states(self, reading: Reading | None, at_us: int, timeline: Timeline) -> list[GpuTimeEntry]:
        accounting = StateAccounting(self.at_us, at_us, timeline=timeline, sums=self.sums)
        accounting.account(self.layout, {part.uuid: part for part in reading.parts} if reading else {})
        return accounting.entries

    def _account_utilisation(self, reading: Reading, timeline: Timeline) -> list[GpuTimeEntry]:
        """Account the utilisation of known parts; new parts start at this reading."""
        entries: list[GpuTimeEntry] = []
        for part in reading.parts:
            slot = self.layout.slots.get(part.uuid)
            if slot is not None:
                accounting = UtilisationAccounting(part, slot, at_us=reading.at_us, sums=self.sums)
                accounting.account(timeline)
                entries += accounting.entries
        return entries

    def _energy_delta(self, reading: Reading) -> int:
        """The energy since the last reading, in mJ."""
        condition = reading.condition
        return self._meter.delta(condition.energy, at_us=reading.at_us, limit=condition.power_limit)

    def _account_energy(
        self, delta: int, used: Sequence[GpuTimeEntry], held: Sequence[GpuTimeEntry], *, at_us: int
    ) -> None:
        work = self.sums.work
        work.energy += delta
        work.energy_resets, work.energy_faults = self._meter.resets, self._meter.faults
        if not delta:
            return
        rest = delta
        for entry, energy in split_energy(delta, used, held):
            rest -= energy
            if not energy:
                continue
            if entry.assignment:
                entry.assignment.add_energy(entry.from_us, entry.to_us, energy=energy)
            else:
                self.sums.add_energy(entry.from_us, energy)
        if rest:
            self.sums.add_energy(at_us - 1, rest)
