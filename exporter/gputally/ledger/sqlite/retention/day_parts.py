"""Days (UTC), the periods of daily rows; the accounting start and the edges of closed periods divide them further."""

import sqlite3
from collections.abc import Iterable
from typing import Final, NamedTuple

from gputally.model.units import US_PER_DAY

_ADD_PERIOD: Final = "INSERT OR IGNORE INTO rolled_periods (start_us, end_us) VALUES (?, ?)"
_PERIOD: Final = "SELECT id FROM rolled_periods WHERE start_us = ?"


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


def numbers_of(connection: sqlite3.Connection, periods: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """The numbers of these periods in the file, which gets those that it lacks."""
    found = sorted(periods)
    connection.executemany(_ADD_PERIOD, found)
    return {period: connection.execute(_PERIOD, period[:1]).fetchone()[0] for period in found}
