"""Amounts that accrue as lines a + b·t, summed up by labels and price before anybody looks at their sums."""

from collections.abc import Iterator

from gputally.accounting.series import Labels
from gputally.model.price import Price


class Lines:
    """What cancels out or adds up is counted once, where thousands of pods, or of slices, are alike."""

    def __init__(self) -> None:
        self._lines: dict[tuple[Labels, Price | None], tuple[int, int]] = {}

    def add(self, labels: Labels, price: Price | None, rate: int, span: tuple[int, int | None]) -> None:
        """`rate` per µs over the span [start, end), for ever if its end is None; a negative rate takes back."""
        start_us, end_us = span
        a, b = self._lines.get((labels, price), (0, 0))
        if end_us is None:
            self._lines[labels, price] = a - rate * start_us, b + rate
        else:
            self._lines[labels, price] = a + rate * max(0, end_us - start_us), b

    def drain(self) -> Iterator[tuple[Labels, Price | None, int, int]]:
        """Labels, price, a and b of each line since the last call."""
        lines, self._lines = self._lines, {}
        return ((labels, price, a, b) for (labels, price), (a, b) in lines.items())
