"""Rolls allocations that ended before the retention up into daily rows, in small transactions."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from gputally.ledger.sqlite.retention.daily_lost import DailyLost
from gputally.ledger.sqlite.retention.daily_rows import DailyRows, hour_of
from gputally.ledger.sqlite.retention.ended_pods import EndedPods, EndedPodsReader
from gputally.ledger.sqlite.retention.free_pages import Transaction
from gputally.ledger.sqlite.retention.rolled_pods import MARK, uid_hash
from gputally.ledger.sqlite.retention.unallocated_days import roll_up_unallocated
from gputally.ledger.sqlite.sums.measured_hours import MEASURED
from gputally.ledger.sqlite.waits.wait_rows import delete_old_waits

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
