"""The days (UTC) of each pod's allocation, an index by which readers find the pods of a window.

A pod may have a row too many, for a day of an earlier revision: readers clip its segments to the window anyway.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from gputally.ledger.tables.allocations import POD_DAYS
from gputally.ledger.tables.statements import delete, insert_missing
from gputally.model.allocation import Segment
from gputally.model.units import US_PER_DAY

LASTING: Final = -1
"""The day of pods that are still allocated, and of those that were for more than `_MOST` days."""
_MOST: Final = 62
IN_WINDOW: Final = f"""
WITH RECURSIVE found (day) AS (
    SELECT {LASTING}
    UNION ALL
    SELECT (SELECT min(day) FROM pod_days WHERE day > max(found.day, :start / {US_PER_DAY} - 1)) FROM found
    WHERE day < (:end - 1) / {US_PER_DAY}
)
SELECT d.pod FROM found CROSS JOIN pod_days d ON d.day = found.day AND d.pod > :after AND d.pod <= :upto
WHERE found.day <= (:end - 1) / {US_PER_DAY}
"""  # noqa: S608 (numbers only)
"""The pods numbered (:after, :upto] that may have segments in the window [:start, :end).

It looks up which days there are, in the transaction that reads the pods: one that ends meanwhile moves to other days.
"""
_ADD: Final = insert_missing(POD_DAYS)
_DELETE: Final = delete(POD_DAYS)
_SPANS: Final = """
SELECT pod, min(start_us), max(max(start_us, end_us - 1)) FROM pod_segments
WHERE pod IN (SELECT id FROM pods WHERE uid IN (SELECT value FROM json_each(?))) GROUP BY pod
"""
"""The first and last moment (µs) of all revisions together; the last one is missing only if none has an end."""


def add_days(connection: sqlite3.Connection, pods: Iterable[tuple[int, bool, Sequence[Segment]]]) -> None:
    """Add the days of revised pods: number, whether the pod had a revision before, and all segments."""
    found = [(pod, is_known, _days_of(segments)) for pod, is_known, segments in pods]
    ended = ((LASTING, pod) for pod, is_known, days in found if is_known and LASTING not in days)
    connection.executemany(_DELETE, ended)
    connection.executemany(_ADD, ((day, pod) for pod, _, days in found for day in days))


def delete_days(connection: sqlite3.Connection, uids: Sequence[str]) -> None:
    """Delete the days of these pods, whose segments are still there."""
    spans = connection.execute(_SPANS, (json.dumps(uids),)).fetchall()
    ended = [(pod, _between(*span)) for pod, *span in spans if None not in span]
    connection.executemany(_DELETE, ((LASTING, pod) for pod, *_ in spans))
    connection.executemany(_DELETE, ((day, pod) for pod, days in ended for day in days))


def _days_of(segments: Sequence[Segment]) -> Sequence[int]:
    if not segments:
        return ()
    ends = [each.end_us for each in segments]
    return _days(min([each.start_us for each in segments]), None if None in ends else max(filter(None, ends)))


def _days(start_us: int, end_us: int | None) -> Sequence[int]:
    if end_us is None:
        return (LASTING,)
    days = _between(start_us, max(start_us, end_us - 1))
    return days if len(days) <= _MOST else (LASTING,)


def _between(first_us: int, last_us: int) -> Sequence[int]:
    return range(first_us // US_PER_DAY, last_us // US_PER_DAY + 1)
