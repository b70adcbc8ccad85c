"""Rolls allocations that ended before the retention up into daily rows, in small transactions.

Their periods are days (UTC), which the accounting start and the edges of closed periods divide further.
"""

import json
import logging
import os
import shutil
import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from gputally.ledger.cuts import pieces
from gputally.ledger.records import Window
from gputally.ledger.sqlite.disruptions import lost_pod
from gputally.ledger.sqlite.ended_pods import MARK, EndedPods, EndedPodsReader, EndedSegment, uid_hash
from gputally.ledger.sqlite.lost_time import LostSums
from gputally.ledger.sqlite.rows import Amounts, Row
from gputally.ledger.sqlite.schema import INCREMENTAL, SHRINKABLE
from gputally.ledger.sqlite.usage import MEASURED, MeasuredHour, divided, parts_of
from gputally.ledger.sqlite.waits import delete_old_waits
from gputally.model.lost_work import CheckpointSource
from gputally.model.units import US_PER_DAY, US_PER_SECOND

_ADD_PERIOD: Final = "INSERT OR IGNORE INTO rolled_periods (start_us, end_us) VALUES (?, ?)"
_PERIOD: Final = "SELECT id FROM rolled_periods WHERE start_us = ?"
_KEY: Final = 10
_AMOUNTS: Final = (
    *("pods", "bound", "wait_us", "seconds", "microseconds", "measured_seconds", "measured_microseconds"),
    *("used_seconds", "used_microseconds", "burst_seconds", "burst_microseconds", "energy"),
)
_ADD: Final = f"""
INSERT INTO daily_rows VALUES ({", ".join("?" * (_KEY + len(_AMOUNTS)))})
ON CONFLICT DO UPDATE SET {", ".join(f"{each} = {each} + excluded.{each}" for each in _AMOUNTS)}
"""  # noqa: S608 (literals only)
_ADD_STEP: Final = "INSERT INTO node_steps VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET change = change + excluded.change"
_NO_STEP: Final = "DELETE FROM node_steps WHERE node_uid_text = ? AND at_us = ? AND change = 0"
PodHour = tuple[str, str, MeasuredHour]
"""The pod's UID, the resource and what was measured."""
_Key = tuple[tuple[int, int], Row]
"""Start and end of the period, and the numbers of a daily row."""
_LOST: Final = """
SELECT pod_uid, from_us, to_us, basis FROM lost_pods WHERE pod_uid IN (SELECT value FROM json_each(:uids))
"""
_LOST_AMOUNTS: Final = (
    *("seconds", "microseconds", "measured_seconds", "measured_microseconds"),
    *("used_seconds", "used_microseconds", "burst_seconds", "burst_microseconds"),
)
_LOST_KEY: Final = 11
_ADD_LOST: Final = f"""
INSERT INTO daily_lost VALUES ({", ".join("?" * (_LOST_KEY + len(_LOST_AMOUNTS)))})
ON CONFLICT DO UPDATE SET {", ".join(f"{each} = {each} + excluded.{each}" for each in _LOST_AMOUNTS)}
"""  # noqa: S608 (literals only)
_LostKey = tuple[tuple[int, int], Row, CheckpointSource]
"""Start and end of the period, the numbers of a daily row, and the basis."""
logger = logging.getLogger(__name__)
Transaction = Callable[[], AbstractContextManager[None]]
_PAGES: Final = 100
"""Pages moved in one step, in some ms."""
_KEPT: Final = 256
"""Free pages that stay for the next writes: 1 MiB."""
_MIB: Final = 1 << 20
_FOLDER: Final = "SQLITE_TMPDIR"
_DAYS: Final = 20
"""Days of one GPU that are rolled up in one transaction."""
_GPUS: Final = 50
"""GPUs looked at in one step."""
_NEXT: Final = "SELECT epoch, gpu FROM unallocated_usage WHERE (epoch, gpu) > (?, ?) ORDER BY epoch, gpu LIMIT 1"
_SUMS: Final = f"""
SELECT start_us / {US_PER_DAY} * {US_PER_DAY} AS day_us, max(node), sum(unattributed), sum(energy)
FROM unallocated_usage WHERE epoch = :epoch AND gpu = :gpu AND start_us < :before
GROUP BY day_us HAVING count(*) > 1 AND NOT max(open)
LIMIT {_DAYS}
"""  # noqa: S608 (numbers only)
_DELETE_DAY: Final = f"""
DELETE FROM unallocated_usage WHERE epoch = ? AND gpu = ? AND start_us >= ? AND start_us < ? + {US_PER_DAY}
"""  # noqa: S608 (numbers only)
_INSERT: Final = """
INSERT INTO unallocated_usage (epoch, gpu, start_us, node, unattributed, energy, open) VALUES (?, ?, ?, ?, ?, ?, 0)
"""
_PAGE: Final = 500
"""Pods looked at in one step."""
_PODS: Final = 25
"""Pods rolled up in one transaction."""
_HOURS: Final = 500
"""Hours of usage rolled up in one transaction."""
_OF_PODS: Final = "(SELECT id FROM pods WHERE uid IN (SELECT value FROM json_each(:uids)))"
_UIDS: Final = "(SELECT value FROM json_each(:uids))"
_HOURS_OF: Final = f"""
SELECT h.assignment, h.start_us, a.pod_uid, a.resource, {MEASURED}
FROM json_each(:uids) AS wanted
CROSS JOIN usage_assignments a ON a.pod_uid = wanted.value
CROSS JOIN usage_hours h ON h.assignment = a.assignment
LIMIT :hours
"""  # noqa: S608 (literals only)
_EDGES: Final = """
SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'accounting_start_us'
UNION SELECT start_us FROM closed_periods UNION SELECT end_us FROM closed_periods
"""
"""Where sums of parts of days are asked for."""
_DELETE_HOUR: Final = "DELETE FROM usage_hours WHERE assignment = ? AND start_us = ?"
_DELETE: Final = (
    f"DELETE FROM usage_assignments WHERE pod_uid IN {_UIDS}",  # noqa: S608 (literals only)
    f"DELETE FROM lost_pods WHERE pod_uid IN {_UIDS}",  # noqa: S608 (literals only)
    f"DELETE FROM pod_segments WHERE pod IN {_OF_PODS}",  # noqa: S608 (literals only)
    f"DELETE FROM pod_revisions WHERE pod IN {_OF_PODS}",  # noqa: S608 (literals only)
    f"DELETE FROM pods WHERE uid IN {_UIDS}",  # noqa: S608 (literals only)
    f"DELETE FROM old_segments WHERE pod_uid IN {_UIDS}",  # noqa: S608 (literals only)
    f"DELETE FROM old_allocations WHERE pod_uid IN {_UIDS}",  # noqa: S608 (literals only)
)
_REMEMBER: Final = "INSERT OR IGNORE INTO rolled_pods VALUES (?)"


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


class DailyRows:
    """Collects rows, which `write` adds to those in the file. `edges` (µs) divide days, see `day_parts`."""

    def __init__(self, edges: Sequence[int]) -> None:
        self._edges = edges
        self._pods: defaultdict[_Key, set[str]] = defaultdict(set)
        self._waits: defaultdict[_Key, list[int]] = defaultdict(lambda: [0, 0])
        self._gpu_time: Counter[_Key] = Counter()
        self._measured: defaultdict[_Key, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        self._steps: Counter[tuple[int, int]] = Counter()

    def add_allocated(self, segments: Iterable[EndedSegment]) -> None:
        """Add all segments of some pods; each pod once."""
        lasting = [each for each in segments if each.start_us < each.end_us]
        if not lasting:
            return
        parts = day_parts((us for each in lasting for us in (each.start_us, each.end_us)), self._edges)
        cuts = parts.cuts
        for each in lasting:
            self._steps[each.node_uid, each.start_us] += each.quantity
            self._steps[each.node_uid, each.end_us] -= each.quantity
            if each.wait_us is not None:
                waits = self._waits[parts.period(bisect_right(cuts, each.start_us)), each.labels]
                waits[:] = waits[0] + 1, waits[1] + each.wait_us
            for piece in pieces(each.start_us, each.end_us, cuts):
                key = parts.period(piece.period), each.labels
                self._gpu_time[key] += each.quantity * (piece.end_us - piece.start_us)
                self._pods[key].add(each.uid)

    def add_measured(self, hours: Sequence[PodHour], segments: Iterable[EndedSegment]) -> None:
        """Add what was measured for these pods; hours without segments belong to no line, and are left out."""
        if not hours:
            return
        of_pods = parts_of((each.uid, each.resource, each.start_us, each.labels) for each in segments)
        parts = day_parts((us for *_, hour in hours for us in hour[:2]), self._edges)
        cuts = parts.cuts
        for uid, resource, hour in hours:
            known = of_pods.get((uid, resource)) or of_pods.get((uid, ""), [])
            for labels, number, amounts in divided(hour, known, Window(*hour[:2]), cuts) if known else ():
                if any(amounts):
                    found = self._measured[parts.period(number), labels]
                    found[:] = map(int.__add__, found, amounts)

    def write(self, connection: sqlite3.Connection) -> None:
        """Add everything to the file, in the transaction of the caller."""
        keys = self._gpu_time.keys() | self._measured.keys()
        numbers = numbers_of(connection, {period for period, _ in keys})
        connection.executemany(_ADD, sorted((numbers[key[0]], *key[1], *self._amounts(key)) for key in keys))
        steps = [(*at, change) for at, change in sorted(self._steps.items()) if change]
        connection.executemany(_ADD_STEP, steps)
        connection.executemany(_NO_STEP, [step[:2] for step in steps])

    def _amounts(self, key: _Key) -> Iterator[int]:
        *measured, energy = self._measured.get(key, [0, 0, 0, 0])
        yield len(self._pods.get(key, ()))
        yield from self._waits.get(key, (0, 0))
        for gpu_time in (self._gpu_time[key], *measured):
            yield from divmod(gpu_time, US_PER_SECOND)
        yield energy


def hour_of(row: Row) -> PodHour:
    """The hour of a row of UID, resource and the columns `MEASURED`."""
    uid, resource, from_us, to_us, *amounts = row
    measured: Amounts = tuple(amounts)
    return uid, resource, MeasuredHour(from_us, to_us, measured)


class DailyLost:
    """Collects rows of those of the pods `uids` that lost work; `edges` (µs) divide days, see `day_parts`."""

    def __init__(self, connection: sqlite3.Connection, uids: Sequence[str], edges: Sequence[int]) -> None:
        rows = connection.execute(_LOST, {"uids": json.dumps(uids)})
        self._lost = {row[0]: lost_pod(row) for row in rows}
        self._edges = edges
        self._sums: defaultdict[_LostKey, list[int]] = defaultdict(lambda: [0, 0, 0, 0])

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
        connection.executemany(_ADD_LOST, rows)


def _divided(amounts: Iterable[int]) -> Iterable[int]:
    """Seconds and the rest of each."""
    return (part for amount in amounts for part in divmod(amount, US_PER_SECOND))


def make_shrinkable(connection: sqlite3.Connection, path: Path) -> None:
    """Rebuild a file of an older version once, so that it can shrink. If that is not possible, it reuses its space."""
    if _value(connection, "auto_vacuum") == INCREMENTAL:
        return
    size = _value(connection, "page_count") * _value(connection, "page_size")
    needed, free = 2 * size, shutil.disk_usage(path.parent).free
    if free < needed:
        logger.warning(
            "%s: its size can decrease only after it was rebuilt once, which needs %d MiB, but %d MiB are free; until "
            "then, the space that --ledger.retention frees is reused; free some space and restart",
            *(path, needed // _MIB, free // _MIB),
        )
        return
    logger.info("%s: is rebuilt once, so that --ledger.retention can reduce its size (%d MiB)", path, size // _MIB)
    try:
        _rebuild(connection, path.parent)
    except sqlite3.OperationalError as error:
        logger.warning("%s: cannot be rebuilt: %s; until that works at a start, its freed space is reused", path, error)


def _rebuild(connection: sqlite3.Connection, folder: Path) -> None:
    """SQLite's temporary copy goes to `folder`, since the usual one may be small or read-only in a container."""
    before = os.environ.get(_FOLDER)
    os.environ[_FOLDER] = str(folder.absolute())
    try:
        connection.execute(SHRINKABLE)
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        del os.environ[_FOLDER]
        if before is not None:
            os.environ[_FOLDER] = before


def release_pages(connection: sqlite3.Connection, transaction: Transaction) -> Iterator[None]:
    """Give free pages back, some in each step. Raises: sqlite3's errors."""
    while _value(connection, "auto_vacuum") == INCREMENTAL and _value(connection, "freelist_count") > _KEPT:
        with transaction():
            for _ in range(_PAGES):  # Python takes only the first of the steps that SQLite needs for more than one
                connection.execute("PRAGMA incremental_vacuum(1)")
        yield


def _value(connection: sqlite3.Connection, name: str) -> int:
    found: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return found


def roll_up_unallocated(connection: sqlite3.Connection, transaction: Transaction, *, before_us: int) -> Iterator[None]:
    """Roll up the hours before `before_us`, a midnight."""
    found: tuple[str, str] | None = ("", "")
    while found is not None:
        with transaction():
            for _ in range(_GPUS):
                following = connection.execute(_NEXT, found).fetchone()
                if following and _roll_up_days(connection, following, before_us):
                    break  # and go on with it in the next step
                found = following
                if found is None:
                    break
        yield


def _roll_up_days(connection: sqlite3.Connection, key: tuple[str, str], before_us: int) -> bool:
    """Roll up some days of a GPU, if there are any."""
    bounds = {"epoch": key[0], "gpu": key[1], "before": before_us}
    days = connection.execute(_SUMS, bounds).fetchall()
    connection.executemany(_DELETE_DAY, [(*key, day_us, day_us) for day_us, *_ in days])
    connection.executemany(_INSERT, [(*key, *row) for row in days])
    if days:
        connection.execute(MARK, {"before": str(before_us)})
    return bool(days)


class RollUp:
    """Rolls up what ended before `before_us`, a midnight in UTC. Each step is one transaction of some milliseconds."""

    def __init__(self, connection: sqlite3.Connection, transaction: Transaction, *, before_us: int) -> None:
        self._connection = connection
        self._transaction = transaction
        self._before_us = before_us
        self._reader = EndedPodsReader(connection, before_us=before_us, page=_PAGE, pods=_PODS)
        self.pods = 0
        """How many were rolled up."""

    def steps(self) -> Iterator[None]:
        """Roll up one batch in each step."""
        after, is_last = 0, False
        while not is_last:
            with self._transaction():
                found = self._reader.batch(after)
                if self._roll_up(found):
                    after, is_last = int(found.after), found.is_last
            yield
        older, is_last = "", False
        while not is_last:
            with self._transaction():
                found = self._reader.older_batch(older)
                if self._roll_up(found):
                    older, is_last = str(found.after), found.is_last
            yield
        yield from roll_up_unallocated(self._connection, self._transaction, before_us=self._before_us)
        yield from delete_old_waits(self._connection, self._transaction, before_us=self._before_us)

    def _roll_up(self, found: EndedPods) -> bool:
        """Roll up hours of usage of these pods, and if those were the last ones, the pods. Whether these are done."""
        if not found.uids:
            return True
        uids = {"uids": json.dumps(found.uids)}
        rows = DailyRows(self._edges())
        lost = DailyLost(self._connection, found.uids, self._edges())
        hours = self._connection.execute(_HOURS_OF, {**uids, "hours": _HOURS}).fetchall()
        measured = [hour_of(row[2:]) for row in hours]
        rows.add_measured(measured, found.segments)
        lost.add_measured(measured, found.segments)
        self._connection.executemany(_DELETE_HOUR, [row[:2] for row in hours])
        is_done = len(hours) < _HOURS
        if is_done:
            rows.add_allocated(found.segments)
            lost.add_allocated(found.segments)
            self._delete(found.uids)
        rows.write(self._connection)
        lost.write(self._connection)
        self._connection.execute(MARK, {"before": str(self._before_us)})
        return is_done

    def _delete(self, uids: Sequence[str]) -> None:
        for sql in _DELETE:
            self._connection.execute(sql, {"uids": json.dumps(uids)})
        self._connection.executemany(_REMEMBER, [(uid_hash(uid),) for uid in uids])
        self.pods += len(uids)

    def _edges(self) -> list[int]:
        return [us for (us,) in self._connection.execute(_EDGES)]
