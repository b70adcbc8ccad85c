"""Adds up what pods did in the time that preemptions destroyed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic

from gputally.ledger.cuts import pieces
from gputally.ledger.records import Window
from gputally.ledger.sqlite.sums.measured_hours import MeasuredHour, Parts, Terms, divided
from gputally.model.work.checkpoint import CheckpointSource
from gputally.model.work.lost_work import LostPod


class LostSums(Generic[Terms]):
    """Allocated, measured, used and burst GPU-time in `found`, by the terms of segments, period and basis.

    Only what is both in the window and in the lost time of a pod counts; `cuts` divide it into periods.
    """

    def __init__(self, lost: Mapping[str, LostPod], window: Window, cuts: Sequence[int]) -> None:
        self.found = defaultdict[tuple[Terms, int, CheckpointSource], list[int]](lambda: [0, 0, 0, 0])
        self._lost = lost
        self._window = window
        self._cuts = cuts

    def add_allocated(self, uid: str, span: tuple[int, int], quantity: int, terms: Terms) -> None:
        """Add a segment from its start to its end."""
        start_us, end_us = self._within(uid, *span)
        if start_us < end_us:
            for piece in pieces(start_us, end_us, self._cuts):
                found = self.found[terms, piece.period, self._lost[uid].basis]
                found[0] += quantity * (piece.end_us - piece.start_us)

    def add_measured(self, hours: Iterable[tuple[str, str, MeasuredHour]], parts: Parts[Terms]) -> None:
        """Add hours by UID and resource, in proportion to time; hours without segments belong to nothing."""
        for uid, resource, hour in hours:
            known = parts.get((uid, resource)) or parts.get((uid, ""))
            window = self._within(uid, hour.from_us, hour.to_us)
            if known and window.start_us < window.end_us:
                for terms, period, amounts in divided(hour, known, window, self._cuts):
                    found = self.found[terms, period, self._lost[uid].basis]
                    found[1:] = map(int.__add__, found[1:], amounts[:3])

    def _within(self, uid: str, start_us: int, end_us: int) -> Window:
        """The part of a span that counts."""
        if (lost := self._lost.get(uid)) is None:
            return Window(start_us, start_us)
        start_us = max(start_us, lost.from_us, self._window.start_us)
        return Window(start_us, min(end_us, lost.to_us, self._window.end_us))
