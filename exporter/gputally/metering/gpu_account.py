"""Accounting of one physical GPU."""

from collections.abc import Sequence

from gputally.metering.attribution import Layout
from gputally.metering.energy import EnergyMeter, GpuTimeEntry, split_energy
from gputally.metering.gpu_time import StateAccounting, UtilisationAccounting
from gputally.metering.sums import GpuSums
from gputally.metering.timeline import Timeline
from gputally.model.devices import Reading, Source
from gputally.model.units import GPU

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
