"""Cuts divide a window into periods, which are numbered from 0."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Piece(NamedTuple):
    """The part [start_us, end_us) of a span that lies in one period."""

    period: int
    start_us: int
    end_us: int


def pieces(start_us: int, end_us: int, cuts: Sequence[int]) -> Iterator[Piece]:
    """The pieces of [start_us, end_us) between ascending `cuts` (µs); one piece if no cut is inside."""
    period = bisect_right(cuts, start_us)
    while period < len(cuts) and cuts[period] < end_us:
        yield Piece(period, start_us, cuts[period])
        start_us = cuts[period]
        period += 1
    yield Piece(period, start_us, end_us)
