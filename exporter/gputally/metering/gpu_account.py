"""The books of one physical GPU."""

from collections.abc import Sequence

from gputally.metering.elapsing import Elapsing
from gputally.metering.energy import Claim, Meter, spent
from gputally.metering.layout import Layout
from gputally.metering.measuring import Measuring
from gputally.metering.running import Sums
from gputally.metering.timeline import Timeline
from gputally.model.measured.device import Reading, Source
from gputally.model.units import GPU

_TRUEST_FIRST = tuple(Source)


class GpuAccount:
    """Begins with the first reading, of which only what is new later counts."""

    def __init__(self, reading: Reading) -> None:
        self.gpu = reading.gpu
        self.since_us = self.at_us = reading.at_us
        self.is_lost = False
        self.source = Source.NONE
        self.sums = Sums()
        self.layout = Layout()
        self._meter = Meter()
        self._metered(reading)
        self._take(reading)

    @property
    def watermark_us(self) -> int:
        """Up to when all its parts are accounted."""
        return self.layout.watermark_us(self.at_us)

    def read(self, reading: Reading, timeline: Timeline) -> bool:
        """Account up to the reading, or as far as it tells; an old one counts for nothing. Whether the layout changed.

        What nobody saw of a GPU that was lost is nobody's.
        """
        if reading.at_us <= self.at_us:
            return False
        used: list[Claim] = []
        held: list[Claim] = []
        if self.is_lost:
            self._lose(reading.at_us)
            self.is_lost = False
            self.layout.begin_anew(reading.at_us)
        else:
            held = self._elapse(reading, reading.at_us, timeline)
            used = self._measure(reading, timeline)
        self._spend(self._metered(reading), used, held, at_us=reading.at_us)
        return self._take(reading)

    def lost(self, at_us: int, timeline: Timeline) -> None:
        """The driver did not reach it at `at_us`: it stands still until it is read again."""
        if at_us <= self.at_us:
            self.is_lost = True
        elif self.is_lost:
            self._lose(at_us)
        else:
            self._elapse(None, at_us, timeline)
            self.at_us = at_us
            self.is_lost = True

    def _take(self, reading: Reading) -> bool:
        """The reading is accounted; what comes next is with its layout."""
        self.gpu, self.at_us = reading.gpu, reading.at_us
        sources = [part.source for part in reading.parts]
        self.source = max(sources, key=_TRUEST_FIRST.index, default=Source.NONE)
        return self.layout.become(reading.parts, at_us=reading.at_us)

    def _lose(self, at_us: int) -> None:
        self.sums.states.lost += GPU * (at_us - self.at_us)
        self.at_us = at_us

    def _elapse(self, reading: Reading | None, at_us: int, timeline: Timeline) -> list[Claim]:
        elapsing = Elapsing(self.at_us, at_us, timeline=timeline, sums=self.sums)
        elapsing.account(self.layout, {part.uuid: part for part in reading.parts} if reading else {})
        return elapsing.claims

    def _measure(self, reading: Reading, timeline: Timeline) -> list[Claim]:
        """What is told of parts that were there before; those that are new begin now."""
        claims: list[Claim] = []
        for part in reading.parts:
            slot = self.layout.slots.get(part.uuid)
            if slot is not None:
                measuring = Measuring(part, slot, at_us=reading.at_us, sums=self.sums)
                measuring.account(timeline)
                claims += measuring.claims
        return claims

    def _metered(self, reading: Reading) -> int:
        """The energy since the last reading, in mJ."""
        condition = reading.condition
        return self._meter.delta(condition.energy, at_us=reading.at_us, limit=condition.power_limit)

    def _spend(self, delta: int, used: Sequence[Claim], held: Sequence[Claim], *, at_us: int) -> None:
        work = self.sums.work
        work.energy += delta
        work.energy_resets, work.energy_faults = self._meter.resets, self._meter.faults
        if not delta:
            return
        left = delta
        for claim, energy in spent(delta, used, held):
            left -= energy
            if not energy:
                continue
            if claim.assignment:
                claim.assignment.spent(claim.from_us, claim.to_us, energy=energy)
            else:
                self.sums.spent(claim.from_us, energy)
        if left:
            self.sums.spent(at_us - 1, left)
