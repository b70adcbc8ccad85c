"""Adds to daily rows what preemptions destroyed of the pods that are rolled up."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
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


class DailyLost:
    """Collects rows of those of the pods `uids` that lost work; `edges` (µs) divide days, see `day_parts`."""

    def __init__(self, connection: sqlite3.Connection, uids: Sequence[str], edges: Sequence[int]) -> None:
        rows = connection.execute(_LOST, {"uids": json.dumps(uids)})
        lost = {row[0]: lost_pod(row) for row in rows}
        instants = [us for each in lost.values() for us in (each.from_us, each.to_us)]
        self._parts = day_parts(instants, edges) if lost else DayParts([0, 0])
        window = Window(self._parts.bounds[0], self._parts.bounds[-1])
        self._sums = LostSums[Row](lost, window, self._parts.cuts)

    def add_allocated(self, segments: Iterable[EndedSegment]) -> None:
        """Add all segments of some pods; each pod once."""
        for each in segments:
            self._sums.add_allocated(each.uid, (each.start_us, each.end_us), each.quantity, each.labels)

    def add_measured(self, hours: Sequence[PodHour], segments: Iterable[EndedSegment]) -> None:
        """Add what was measured for these pods."""
        self._sums.add_measured(
            hours, parts_of((each.uid, each.resource, each.start_us, each.labels) for each in segments)
        )

    def write(self, connection: sqlite3.Connection) -> None:
        """Add everything to the file, in the transaction of the caller."""
        found = {key: amounts for key, amounts in self._sums.found.items() if any(amounts)}
        numbers = numbers_of(connection, {self._parts.period(number) for _, number, _ in found})
        connection.executemany(
            _ADD,
            (
                (numbers[self._parts.period(number)], *labels, basis.value, *_divided(amounts))
                for (labels, number, basis), amounts in found.items()
            ),
        )


def _divided(amounts: Iterable[int]) -> Iterable[int]:
    """Seconds and the rest of each."""
    return (part for amount in amounts for part in divmod(amount, US_PER_SECOND))
