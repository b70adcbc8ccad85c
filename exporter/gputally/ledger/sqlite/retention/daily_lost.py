"""Adds to daily rows what preemptions destroyed of the pods that are rolled up."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from gputally.ledger.records import Window
from gputally.ledger.sqlite.losses.lost_sums import LostSums
from gputally.ledger.sqlite.losses.lost_work_rows import lost_pod
from gputally.ledger.sqlite.retention.daily_rows import PodHour
from gputally.ledger.sqlite.retention.day_parts import DayParts, day_parts, numbers_of
from gputally.ledger.sqlite.retention.ended_pods import EndedSegment
from gputally.ledger.sqlite.segment_rows import Row
from gputally.ledger.sqlite.sums.measured_hours import parts_of
from gputally.model.units import US_PER_SECOND
from gputally.model.work.checkpoint import CheckpointSource

_LOST: Final = """
SELECT pod_uid, from_us, to_us, basis FROM lost_pods WHERE pod_uid IN (SELECT value FROM json_each(:uids))
"""
_AMOUNTS: Final = (
    *("seconds", "microseconds", "measured_seconds", "measured_microseconds"),
    *("used_seconds", "used_microseconds", "burst_seconds", "burst_microseconds"),
)
_KEY: Final = 11
_ADD: Final = f"""
INSERT INTO daily_lost VALUES ({", ".join("?" * (_KEY + len(_AMOUNTS)))})
ON CONFLICT DO UPDATE SET {", ".join(f"{each} = {each} + excluded.{each}" for each in _AMOUNTS)}
"""  # noqa: S608 (literals only)


_Key = tuple[tuple[int, int], Row, CheckpointSource]
"""Start and end of the period, the numbers of a daily row, and the basis."""


class DailyLost:
    """Collects rows of those of the pods `uids` that lost work; `edges` (µs) divide days, see `day_parts`."""

    def __init__(self, connection: sqlite3.Connection, uids: Sequence[str], edges: Sequence[int]) -> None:
        rows = connection.execute(_LOST, {"uids": json.dumps(uids)})
        self._lost = {row[0]: lost_pod(row) for row in rows}
        self._edges = edges
        self._sums: defaultdict[_Key, list[int]] = defaultdict(lambda: [0, 0, 0, 0])

    def add_allocated(self, segments: Iterable[EndedSegment]) -> None:
        """Add all segments of some pods; each pod once."""
        found = [each for each in segments if each.uid in self._lost and each.start_us < each.end_us]
        with self._sums_of([us for each in found for us in (each.start_us, each.end_us)]) as sums:
            for each in found:
                sums.add_allocated(each.uid, (each.start_us, each.end_us), each.quantity, each.labels)

    def add_measured(self, hours: Sequence[PodHour], segments: Iterable[EndedSegment]) -> None:
        """Add what was measured for these pods."""
        found = [each for each in hours if each[0] in self._lost]
        parts = ((each.uid, each.resource, each.start_us, each.labels) for each in segments if each.uid in self._lost)
        with self._sums_of([us for *_, hour in found for us in (hour.from_us, hour.to_us)]) as sums:
            sums.add_measured(found, parts_of(parts))

    @contextmanager
    def _sums_of(self, instants: Sequence[int]) -> Iterator[LostSums[Row]]:
        """Sums by day between the instants, which are added to the rows."""
        parts = day_parts(instants, self._edges) if instants else DayParts([0, 0])
        sums = LostSums[Row](self._lost, Window(parts.bounds[0], parts.bounds[-1]), parts.cuts)
        yield sums
        for (labels, number, basis), amounts in sums.found.items():
            if any(amounts):
                known = self._sums[parts.period(number), labels, basis]
                known[:] = map(int.__add__, known, amounts)

    def write(self, connection: sqlite3.Connection) -> None:
        """Add everything to the file, in the transaction of the caller."""
        numbers = numbers_of(connection, {period for period, *_ in self._sums})
        rows = (
            (numbers[period], *labels, basis.value, *_divided(amounts))
            for (period, labels, basis), amounts in self._sums.items()
        )
        connection.executemany(_ADD, rows)


def _divided(amounts: Iterable[int]) -> Iterable[int]:
    """Seconds and the rest of each."""
    return (part for amount in amounts for part in divmod(amount, US_PER_SECOND))
