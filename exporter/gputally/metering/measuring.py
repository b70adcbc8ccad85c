"""The utilisation of one part of a GPU, as it is told, given to those who held it then."""

from typing import Final

from gputally.metering.attribution import Division, divided, division
from gputally.metering.energy import Claim
from gputally.metering.layout import Slot
from gputally.metering.running import Sums
from gputally.metering.timeline import Piece, Stretch, Timeline
from gputally.model.measured.device import BUSY, Part, Source
from gputally.model.units import US_PER_SECOND

LATE_US: Final = 10 * US_PER_SECOND
"""How late the driver may tell utilisation; what it tells later is left out, so that the books go on without it."""


class Measuring:
    """What one reading, at `at_us`, tells of the use of one part."""

    def __init__(self, part: Part, slot: Slot, *, at_us: int, sums: Sums) -> None:
        self.claims: list[Claim] = []
        """Who used what, nobody's too."""
        self._part = part
        self._slot = slot
        self._at_us = at_us
        self._sums = sums
        self._last: tuple[Stretch, Division] | None = None

    def account(self, timeline: Timeline) -> None:
        """Give it to the holders, and move on to where it ends; what is told twice or too late counts once or never."""
        slot, at_us = self._slot, self._at_us
        for span in self._part.busy:
            from_us, to_us = max(span.from_us, slot.upto_us), min(span.to_us, at_us)
            for piece in timeline.pieces(slot.uuid, from_us, to_us):
                self._piece(piece, min(max(0, span.busy), BUSY))
            slot.upto_us = max(slot.upto_us, to_us)
        slot.upto_us = at_us if self._part.source is Source.NONE else max(slot.upto_us, at_us - LATE_US)

    def _piece(self, piece: Piece, busy: int) -> None:
        from_us, to_us, stretch = piece
        gpu_time = self._slot.weight * (to_us - from_us)
        used = gpu_time * busy // BUSY
        work = self._sums.work
        work.measured += gpu_time
        work.used += used
        if stretch is None:
            work.unknown += used
            nobody = used
        else:
            nobody = self._attribute(piece, stretch, used)
            self._sums.unattributed(from_us, nobody)
        self.claims.append(Claim(None, from_us, to_us, nobody))

    def _attribute(self, piece: Piece, stretch: Stretch, used: int) -> int:
        """Give what was `used` to the holders, and return what is nobody's."""
        amounts, nobody = divided(used, self._division(stretch))
        shares = stretch.shares_of(self._slot.weight)
        for assignment, share, amount in zip(stretch.assignments, shares, amounts, strict=True):
            assignment.measured(piece.from_us, piece.to_us, share=share, used=amount)
            self.claims.append(Claim(assignment, piece.from_us, piece.to_us, amount))
        return nobody

    def _division(self, stretch: Stretch) -> Division:
        """How the use is divided in that stretch; the processes are those of the whole reading."""
        if self._last is None or self._last[0] is not stretch:
            shares = stretch.shares_of(self._slot.weight)
            self._last = (stretch, division(stretch.held, shares, self._part.processes))
        return self._last[1]
