"""Sums of the time that preemptions destroyed, from segments and measured hours of any storage."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic

from gputally.ledger.measured_hours import Amounts, MeasuredHour, Parts, Terms, divided
from gputally.ledger.records import Window, pieces
from gputally.model.lost_work import CheckpointSource, LostPod


class LostSums(Generic[Terms]):
    """Allocated, measured, used and burst GPU-time in `found`, by the terms of segments, period and basis.

    Only what is both in the window and lost counts; `cuts` divide it into periods.
    """

    def __init__(self, lost: Mapping[str, LostPod], window: Window, cuts: Sequence[int]) -> None:
        self.found = defaultdict[tuple[Terms, int, CheckpointSource], list[int]](lambda: [0, 0, 0, 0])
        self._lost = lost
        self._window = window
        self._cuts = cuts

    def add_allocated(self, uid: str, span: tuple[int, int], quantity: int, terms: Terms) -> None:
        """Add a segment from its start to its end."""
        if (lost := self._lost.get(uid)) is None:
            return
        start_us = max(span[0], lost.from_us, self._window.start_us)
        end_us = min(span[1], lost.to_us, self._window.end_us)
        if start_us < end_us:
            for piece in pieces(start_us, end_us, self._cuts):
                found = self.found[terms, piece.period, lost.basis]
                found[0] += quantity * (piece.end_us - piece.start_us)

    def add_measured(self, hours: Iterable[tuple[str, str, MeasuredHour]], parts: Parts[Terms]) -> None:
        """Add hours by UID and resource, in proportion to time; hours without segments belong to nothing.

        A pod did nothing before its start or after its end: what seems so is due to the clock of its node.
        """
        for uid, resource, hour in hours:
            lost, known = self._lost.get(uid), parts.get((uid, resource)) or parts.get((uid, ""))
            if lost and known:
                from_us = hour.from_us if lost.basis is CheckpointSource.START else lost.from_us
                window = Window(max(hour.from_us, from_us, self._window.start_us), min(hour.to_us, self._window.end_us))
                if window.start_us < window.end_us:
                    self._add(lost.basis, divided(hour, known, window, self._cuts))

    def _add(self, basis: CheckpointSource, amounts: Iterable[tuple[Terms, int, Amounts]]) -> None:
        for terms, period, some in amounts:
            found = self.found[terms, period, basis]
            found[1:] = map(int.__add__, found[1:], some[:3])
