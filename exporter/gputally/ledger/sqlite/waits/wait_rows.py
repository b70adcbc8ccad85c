"""Waits of pods as rows of the ledger, and back."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from gputally.accounting.changes.changes import Changes
from gputally.ledger.sqlite.record_starts import MOVE_WAITS
from gputally.ledger.sqlite.waits.uncreated_rows import DELETE_OLD_UNCREATED
from gputally.ledger.wait_record import WaitRecord
from gputally.model.placement.verdict import Reason
from gputally.model.placement.wait import WaitCause, WaitRow

Row = tuple[Any, ...]
UPSERT_WAIT: Final = "INSERT OR REPLACE INTO waits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
DELETE_WAIT: Final = "DELETE FROM waits WHERE pod_uid = ? AND from_us = ?"
_COLUMNS: Final = ", ".join(WaitRecord.__struct_fields__)
_WAITS: Final = f"""
SELECT {_COLUMNS} FROM waits
WHERE from_us < :end AND (to_us IS NULL OR to_us > :start)
ORDER BY from_us, pod_uid
"""  # noqa: S608 (literals only)
_WAITS_OF: Final = f"""
SELECT {_COLUMNS} FROM waits
WHERE pod_uid = :uid AND from_us < :end AND (to_us IS NULL OR to_us > :start)
ORDER BY from_us
"""  # noqa: S608 (literals only)
_WAITS_NAMED: Final = f"""
SELECT {_COLUMNS} FROM waits
WHERE name = :name AND namespace = :namespace AND +from_us < :end AND (to_us IS NULL OR to_us > :start)
ORDER BY +from_us, pod_uid
"""  # noqa: S608 (literals only)
"""Reads the whole table, 0.1 s for a million rows: by the index on begins, it would take 2.5 s."""
_DELETE_OLD: Final = """
DELETE FROM waits WHERE (pod_uid, from_us) IN (
    SELECT pod_uid, from_us FROM waits WHERE from_us < :before AND to_us < :before LIMIT :rows
)
"""
_MOST_ROWS: Final = 500
"""Rows that one transaction deletes."""


def waits(changes: Changes) -> Iterator[Row]:
    """New waits, and those with another end."""
    return (_row(each) for each in changes.waits.values() if each)


def withdrawn_waits(changes: Changes) -> Iterator[Row]:
    """Waits that were charged otherwise later."""
    return (key for key, each in changes.waits.items() if each is None)


def read_waits(
    rows: Callable[..., list[Row]], bounds: Mapping[str, int], pod_uid: str, named: tuple[str, str]
) -> Iterator[WaitRecord]:
    """Waits that overlap the bounds, of one pod, of those `named` so, or of all."""
    namespace, name = named
    if pod_uid:
        return map(_record, rows(_WAITS_OF, {**bounds, "uid": pod_uid}))
    if name:
        return map(_record, rows(_WAITS_NAMED, {**bounds, "namespace": namespace, "name": name}))
    return map(_record, rows(_WAITS, bounds))


def _record(row: Row) -> WaitRecord:
    found = dict(zip(WaitRecord.__struct_fields__, row, strict=True))
    return WaitRecord(**found | {"reason": Reason(found["reason"]), "cause": WaitCause(found["cause"])})


def delete_old_waits(
    connection: sqlite3.Connection, transaction: Callable[[], AbstractContextManager[None]], *, before_us: int
) -> Iterator[None]:
    """Delete the waits that ended before that time, of pods and of workloads, some in each step.

    From then on, the waits of the ledger begin at that time.
    """
    for query in (_DELETE_OLD, DELETE_OLD_UNCREATED):
        deleted = _MOST_ROWS
        while deleted == _MOST_ROWS:
            with transaction():
                deleted = connection.execute(query, {"before": before_us, "rows": _MOST_ROWS}).rowcount
                if deleted:
                    connection.execute(MOVE_WAITS, {"before": before_us})
            yield


def _row(row: WaitRow) -> Row:
    wait = row.wait
    pod = row.uid, wait.from_us, wait.to_us, row.namespace, row.name
    why = wait.tier, wait.tenant, wait.quantity, wait.reason.value, wait.cause.value
    charged = *(wait.occupant or ("", "")), wait.price.key if wait.price else None
    return *pod, *why, *charged, wait.occupied, wait.highest.key if wait.highest else None
