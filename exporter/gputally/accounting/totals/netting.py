"""Sums amounts that accrue as lines a + b·t by labels and price, before they are read."""

from collections.abc import Iterable, Iterator

from gputally.accounting.totals.series import Labels
from gputally.model.allocation import Segment
from gputally.model.price import Price


class Netting:
    """Adds up equal changes, so that thousands of similar pods or slices are posted once."""

    def __init__(self) -> None:
        self._lines: dict[tuple[Labels, Price | None], tuple[int, int, int]] = {}

    def add(self, labels: Labels, price: Price | None, rate: int, span: tuple[int, int | None], *, at_us: int) -> None:
        """Accrue `rate` per µs over [start, end), without end if it is None; a negative rate takes back."""
        start_us, end_us = span
        a, b, first_us = self._lines.get((labels, price), (0, 0, at_us))
        if end_us is None:
            self._lines[labels, price] = a - rate * start_us, b + rate, first_us
        else:
            self._lines[labels, price] = a + rate * max(0, end_us - start_us), b, first_us

    def replace(self, before: Iterable[Segment], after: Iterable[Segment], *, from_us: int, at_us: int) -> None:
        """Take back what former segments allocated from `from_us` on, and add the new ones."""
        for sign, segments in ((-1, before), (1, after)):
            for each in segments:
                span = max(each.start_us, from_us), each.end_us
                self.add(each.labels, each.price, sign * each.quantity, span, at_us=at_us)

    def drain(self) -> Iterator[tuple[Labels, Price | None, int, int, int]]:
        """Labels, price, a and b of each line since the last call, and the time of its first change."""
        lines, self._lines = self._lines, {}
        return ((*key, *line) for key, line in lines.items())
