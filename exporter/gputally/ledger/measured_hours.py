"""What was measured, divided among the parts of pods in proportion to time, from rows of any storage."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from gputally.ledger.records import Window, pieces

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
