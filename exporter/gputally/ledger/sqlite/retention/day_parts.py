"""Days (UTC), the periods of daily rows; the day of the accounting start has two parts, since counters begin there."""

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


def day_parts(instants: Iterable[int], accounting_start_us: int) -> DayParts:
    """The periods that cover all of these instants, which are not all the same."""
    found = sorted(instants)
    first_us = found[0] // US_PER_DAY * US_PER_DAY
    bounds = {*range(first_us, found[-1] + US_PER_DAY, US_PER_DAY)}
    if first_us < accounting_start_us < max(bounds):
        bounds.add(accounting_start_us)
    return DayParts(sorted(bounds))
