"""Amounts that accrue as lines a + b·t, summed up by labels and price before anybody looks at their sums."""

from collections.abc import Iterator

from gputally.accounting.totals.series import Labels
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

    def drain(self) -> Iterator[tuple[Labels, Price | None, int, int, int]]:
        """Labels, price, a and b of each line since the last call, and when anything was first added to it."""
        lines, self._lines = self._lines, {}
        return ((*key, *line) for key, line in lines.items())
