"""Sums of what was measured, and of the time that preemptions destroyed, from rows of any storage.

Hours are divided among the parts of pods in proportion to time.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from gputally.ledger.records import Window, pieces
from gputally.model.lost_work import CheckpointSource, LostPod

Terms = TypeVar("Terms")
Amounts = tuple[int, ...]
"""Measured, used and burst (µs·µGPU), and energy (mJ)."""


class MeasuredHour(NamedTuple):
    """What was measured in [from_us, to_us), by our clock."""

    from_us: int
    to_us: int
    amounts: Amounts

    def upto(self, at_us: int) -> Amounts:
        """The amounts before `at_us`, in proportion to time."""
        span_us = self.to_us - self.from_us
        elapsed_us = min(max(at_us, self.from_us), self.to_us) - self.from_us
        return tuple(amount * elapsed_us // span_us for amount in self.amounts)


class LabelledPart(NamedTuple, Generic[Terms]):
    """A pod's labels and price from `from_us` on."""

    from_us: int
    terms: Terms


Parts = dict[tuple[str, str], list[LabelledPart[Terms]]]
"""The parts of each pod by its UID and resource, and by "" those of all its resources, each in the order of time."""


def parts_of(found: Iterable[tuple[str, str, int, Terms]]) -> Parts[Terms]:
    """The parts from (UID, resource, start, terms) of segments, in the order of time; they end where terms change."""
    pods: defaultdict[tuple[str, str], list[LabelledPart[Terms]]] = defaultdict(list)
    for uid, resource, start_us, terms in found:
        for parts in (pods[uid, resource], pods[uid, ""]):
            if not parts or parts[-1].terms != terms:
                parts.append(LabelledPart(start_us, terms))
    return dict(pods)


def divided(
    hour: MeasuredHour, parts: Sequence[LabelledPart[Terms]], window: Window, cuts: Sequence[int]
) -> Iterator[tuple[Terms, int, Amounts]]:
    """The amounts within the window by terms and period; the outer parts extend beyond their bounds.

    However an hour is divided, what adjacent windows and periods have of it adds up to it.
    """
    start_us, end_us = max(window.start_us, hour.from_us), min(window.end_us, hour.to_us)
    changes = [min(max(part.from_us, start_us), end_us) for part in parts[1:]]
    for part, (from_us, to_us) in zip(parts, pairwise([start_us, *changes, end_us]), strict=True):
        for piece in pieces(from_us, to_us, cuts):
            amounts = map(int.__sub__, hour.upto(piece.end_us), hour.upto(piece.start_us))
            yield part.terms, piece.period, tuple(amounts)


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
