"""Rolls what ended before the retention up into daily rows and gives free pages back, in small transactions."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

from gputally.ledger.sqlite.daily_rows import DailyLost, DailyRows, hour_of
from gputally.ledger.sqlite.ended_pods import MARK, EndedPods, EndedPodsReader, uid_hash
from gputally.ledger.sqlite.pod_days import delete_days
from gputally.ledger.sqlite.schema import INCREMENTAL
from gputally.ledger.sqlite.summed_pages import FinishedPages
from gputally.ledger.sqlite.usage import MEASURED
from gputally.ledger.sqlite.waits import delete_old_waits
from gputally.ledger.tables.daily import ROLLED_PODS
from gputally.ledger.tables.statements import delete, insert, insert_missing
from gputally.ledger.tables.usage import UNALLOCATED_USAGE, USAGE_HOURS
from gputally.model.units import US_PER_DAY

Transaction = Callable[[], AbstractContextManager[None]]
_PAGES: Final = 100
"""Pages moved in one step, in some ms."""
_KEPT: Final = 256
"""Free pages that stay for the next writes: 1 MiB."""


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
_INSERT: Final = insert(UNALLOCATED_USAGE)
_PAGE: Final = 500
"""Pods looked at in one step."""
_PODS: Final = 25
"""Pods rolled up in one transaction."""
_HOURS: Final = 500
"""Hours of usage rolled up in one transaction."""
_NUMBERS: Final = "SELECT id FROM pods WHERE uid IN (SELECT value FROM json_each(:uids))"
_OF_PODS: Final = f"({_NUMBERS})"
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
_DELETE_HOUR: Final = delete(USAGE_HOURS)
_DELETE: Final = (
    f"DELETE FROM usage_assignments WHERE pod_uid IN {_UIDS}",  # noqa: S608 (literals only)
    f"DELETE FROM lost_pods WHERE pod_uid IN {_UIDS}",  # noqa: S608 (literals only)
    f"DELETE FROM pod_segments WHERE pod IN {_OF_PODS}",  # noqa: S608 (literals only)
    f"DELETE FROM pod_revisions WHERE pod IN {_OF_PODS}",  # noqa: S608 (literals only)
    f"DELETE FROM pods WHERE uid IN {_UIDS}",  # noqa: S608 (literals only)
)
_REMEMBER: Final = insert_missing(ROLLED_PODS)


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
    connection.executemany(_INSERT, [(*key, *row, False) for row in days])
    if days:
        connection.execute(MARK, {"before": str(before_us)})
    return bool(days)


class RollUp:
    """Rolls up what ended before `before_us`, a midnight in UTC. Each step is one transaction of some milliseconds."""

    def __init__(
        self, connection: sqlite3.Connection, transaction: Transaction, finished: FinishedPages, *, before_us: int
    ) -> None:
        self._connection = connection
        self._finished = finished
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
                    after, is_last = found.after, found.is_last
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
        numbers = self._connection.execute(_NUMBERS, {"uids": json.dumps(uids)}).fetchall()
        self._finished.withdraw(number for (number,) in numbers)
        delete_days(self._connection, uids)
        for sql in _DELETE:
            self._connection.execute(sql, {"uids": json.dumps(uids)})
        self._connection.executemany(_REMEMBER, [ROLLED_PODS.new(uid_hash(uid)) for uid in uids])
        self.pods += len(uids)

    def _edges(self) -> list[int]:
        return [us for (us,) in self._connection.execute(_EDGES)]
