"""The time between two readings of a GPU: by state, and what of its memory was whose."""

from collections.abc import Iterator, Mapping
from typing import Final

from gputally.metering.assignment_meter import hour_of
from gputally.metering.attribution import memory
from gputally.metering.energy import Claim
from gputally.metering.layout import Layout, Slot
from gputally.metering.running import Sums
from gputally.metering.timeline import Piece, Stretch, Timeline
from gputally.model.measured.device import Part
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

SPARSE_US: Final = 60 * US_PER_SECOND
"""Readings further apart say nothing about the memory in between."""


class Elapsing:
    """The time from `from_us` to `to_us`, in which a GPU had that layout; memory is as read at its end."""

    def __init__(self, from_us: int, to_us: int, *, timeline: Timeline, sums: Sums) -> None:
        self.claims: list[Claim] = []
        """Who held what, nobody's too."""
        self._from_us = from_us
        self._to_us = to_us
        self._timeline = timeline
        self._sums = sums

    def account(self, layout: Layout, parts: Mapping[str, Part]) -> None:
        """Divide the time among the states and the holders; `parts` are those read at its end, by UUID."""
        is_dense = self._to_us - self._from_us <= SPARSE_US
        for slot in layout.slots.values():
            part = parts.get(slot.uuid) if is_dense else None
            for piece in self._timeline.pieces(slot.uuid, self._from_us, self._to_us):
                self._piece(slot, piece, part)
        if layout.unsliced:
            for from_us, to_us in _hours(self._from_us, self._to_us):
                unsliced = layout.unsliced * (to_us - from_us)
                self._sums.states.unsliced += unsliced
                self.claims.append(Claim(None, from_us, to_us, unsliced))

    def _piece(self, slot: Slot, piece: Piece, part: Part | None) -> None:
        from_us, to_us, stretch = piece
        rest = slot.weight * (to_us - from_us)
        states = self._sums.states
        if stretch is None:
            states.unknown += rest
        else:
            rest -= self._held(piece, stretch, slot.weight)
            states.free += rest if stretch.offered else 0
            states.unhealthy += 0 if stretch.offered else rest
            if stretch.held:
                _remember(piece, stretch, slot.weight, part)
        if rest:
            self.claims.append(Claim(None, from_us, to_us, rest))

    def _held(self, piece: Piece, stretch: Stretch, weight: int) -> int:
        """Let its holders have held it, and return how much that is."""
        held = 0
        for assignment, share in zip(stretch.assignments, stretch.shares_of(weight), strict=True):
            gpu_time = share * (piece.to_us - piece.from_us)
            assignment.held_for(gpu_time)
            self.claims.append(Claim(assignment, piece.from_us, piece.to_us, gpu_time))
            held += gpu_time
        self._sums.states.held += held
        return held


def _remember(piece: Piece, stretch: Stretch, weight: int, part: Part | None) -> None:
    shares = stretch.shares_of(weight)
    found = memory(stretch.held, shares, part.processes, part.memory_used) if part else None
    for index, assignment in enumerate(stretch.assignments):
        if found is None:
            assignment.tally.memory_now = None
        else:
            assignment.remembered(piece.from_us, piece.to_us, memory=found[index])


def _hours(from_us: int, to_us: int) -> Iterator[tuple[int, int]]:
    while from_us < to_us:
        until_us = min(to_us, hour_of(from_us) + US_PER_HOUR)
        yield from_us, until_us
        from_us = until_us
