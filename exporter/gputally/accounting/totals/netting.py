"""Amounts that accrue as lines a + b·t, summed up by labels and price before anybody looks at their sums."""

from collections.abc import Iterable, Iterator

from gputally.accounting.totals.series import Labels
from gputally.model.allocation import Segment
from gputally.model.price import Price


class Netting:
    """What cancels out or adds up is counted once, where thousands of pods, or of slices, are alike."""

    def __init__(self) -> None:
        self._lines: dict[tuple[Labels, Price | None], tuple[int, int, int]] = {}

    def add(self, labels: Labels, price: Price | None, rate: int, span: tuple[int, int | None], *, at_us: int) -> None:
        """`rate` per µs over the span [start, end), for ever if its end is None; a negative rate takes back."""
        start_us, end_us = span
        a, b, first_us = self._lines.get((labels, price), (0, 0, at_us))
        if end_us is None:
            self._lines[labels, price] = a - rate * start_us, b + rate, first_us
        else:
            self._lines[labels, price] = a + rate * max(0, end_us - start_us), b, first_us

    def replace(self, before: Iterable[Segment], after: Iterable[Segment], *, from_us: int, at_us: int) -> None:
        """Take back what segments allocated from `from_us` on, and add what others allocate."""
        for sign, segments in ((-1, before), (1, after)):
            for each in segments:
                span = max(each.start_us, from_us), each.end_us
                self.add(each.labels, each.price, sign * each.quantity, span, at_us=at_us)

    def drain(self) -> Iterator[tuple[Labels, Price | None, int, int, int]]:
        """Labels, price, a and b of each line since the last call, and when anything was first added to it."""
        lines, self._lines = self._lines, {}
        return ((*key, *line) for key, line in lines.items())
