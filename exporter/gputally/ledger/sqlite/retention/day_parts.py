"""Days (UTC), the periods of daily rows; the accounting start and the edges of closed periods divide them further."""

from collections.abc import Iterable
from typing import NamedTuple

from gputally.model.units import US_PER_DAY


class DayParts(NamedTuple):
    """Consecutive periods, one between each two of the `bounds` (µs)."""

    bounds: list[int]

    @property
    def cuts(self) -> list[int]:
        """The bounds between the first and the last."""
        return self.bounds[1:-1]

    def period(self, number: int) -> tuple[int, int]:
        """The start and end of a period, which are numbered from 0."""
        return self.bounds[number], self.bounds[number + 1]


def day_parts(instants: Iterable[int], edges: Iterable[int]) -> DayParts:
    """The periods that cover all of these instants, which are not all the same; `edges` divide days."""
    found = sorted(instants)
    first_us = found[0] // US_PER_DAY * US_PER_DAY
    bounds = {*range(first_us, found[-1] + US_PER_DAY, US_PER_DAY)}
    last_us = max(bounds)
    return DayParts(sorted(bounds.union(us for us in edges if first_us < us < last_us)))
