"""Waits for GPUs as rows, of pods and of workloads whose pods do not exist, and back with their prices."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import chain
from typing import Final

from gputally.ledger.price_columns import PRICE, price_of
from gputally.ledger.records import IMPORTED, PendingTime, Records, WaitRecord
from gputally.ledger.sqlite.rows import Row, records_of
from gputally.ledger.tables.statements import listed, upsert
from gputally.ledger.tables.waits import WAITS
from gputally.ledger.tables.working import META
from gputally.model.price import Price
from gputally.model.verdicts import Reason
from gputally.model.waits import WaitCause

DELETE_OLD_UNCREATED: Final = """
DELETE FROM uncreated_waits WHERE (namespace, workload_uid, from_us) IN (
    SELECT namespace, workload_uid, from_us FROM uncreated_waits
    WHERE from_us < :before AND to_us < :before LIMIT :rows
)
"""
_COLUMNS: Final = listed(WAITS.fields)
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
_OF_PRICE: Final = len(PRICE) + 1
"""Columns of a price."""
_PAGE: Final = 10_000
_PRICE: Final = ", ".join(f"{of}.{column}" for of in ("p", "h") for column in ("price_key", *PRICE))
_PRICES: Final = """LEFT JOIN prices p ON p.price_key = w.price_key
LEFT JOIN prices h ON h.price_key = w.highest_price_key"""
_OVERLAPS: Final = "w.from_us < :end AND (w.to_us IS NULL OR w.to_us > :start)"
_PRICED_WAITS: Final = f"""
SELECT w.namespace, w.pod_uid, w.from_us, w.to_us, w.name, w.tier, w.tenant, 1, w.quantity, w.reason, w.cause,
       w.occupying_tier, w.occupying_tenant, 0, ifnull(w.occupied, w.quantity), {_PRICE}
FROM waits w {_PRICES}
WHERE (w.pod_uid, w.from_us) > (:uid, :from) AND {_OVERLAPS}
ORDER BY w.pod_uid, w.from_us LIMIT {_PAGE}
"""  # noqa: S608 (literals only)
_PRICED_UNCREATED: Final = f"""
SELECT w.namespace, w.workload_uid, w.from_us, w.to_us, w.name, w.tier, w.tenant, w.pods, w.quantity, w.reason, w.cause,
       '', '', w.is_at_least, 0, {_PRICE}
FROM uncreated_waits w {_PRICES}
WHERE (w.namespace, w.workload_uid, w.from_us) > (:namespace, :uid, :from) AND {_OVERLAPS}
ORDER BY w.namespace, w.workload_uid, w.from_us LIMIT {_PAGE}
"""  # noqa: S608 (literals only)
_OFF: Final = ""
"""The value of `waits_from_us` in the table `meta` while waits are not recorded."""
_KEEP: Final = """
INSERT INTO meta (key, value) VALUES ('waits_from_us', :start)
ON CONFLICT (key) DO UPDATE SET value = :start WHERE value = ''
"""
_NOT_RECORDED: Final = upsert(META), META.new("waits_from_us", _OFF)
_MOVE: Final = """
UPDATE meta SET value = CAST(max(CAST(value AS INTEGER), :before) AS TEXT) WHERE key = 'waits_from_us' AND value <> ''
"""
"""In the transaction that deletes waits which ended before :before (µs)."""


def keep_start_of_waits(connection: sqlite3.Connection, *, start_us: int, has_waits: bool) -> None:
    """Keep that waits begin at `start_us`, unless they began before; or that they are not recorded.

    This comes before the first ones are written.
    """
    if has_waits:
        connection.execute(_KEEP, {"start": start_us})
    else:
        connection.execute(*_NOT_RECORDED)


def later_records(meta: Mapping[str, str]) -> dict[Records, int | None]:
    """The kinds that begin after the accounting start, with their first time (µs); None for those that are missing."""
    if meta.get("cluster") == IMPORTED:
        return {Records.DISRUPTIONS: None, Records.WAITS: None}
    start_us, waits = int(meta["accounting_start_us"]), meta["waits_from_us"]
    waits_us = None if waits == _OFF else int(waits)
    found = {} if waits_us == start_us else {Records.WAITS: waits_us}
    if "detail_start_us" in meta:  # the retention deletes single pods and waits
        detail_us = int(meta["detail_start_us"])
        found |= {Records.PODS: detail_us, Records.WAITS: None if waits_us is None else max(waits_us, detail_us)}
    return found


def read_waits(
    rows: Callable[..., list[Row]], bounds: Mapping[str, int], pod_uid: str, named: tuple[str, str]
) -> Iterator[WaitRecord]:
    """Waits that overlap the bounds, of one pod, of those `named` so, or of all."""
    namespace, name = named
    if pod_uid:
        return records_of(WaitRecord, rows(_WAITS_OF, {**bounds, "uid": pod_uid}))
    if name:
        return records_of(WaitRecord, rows(_WAITS_NAMED, {**bounds, "namespace": namespace, "name": name}))
    return records_of(WaitRecord, rows(_WAITS, bounds))


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
                    connection.execute(_MOVE, {"before": before_us})
            yield


def read_pending_times(rows: Callable[..., list[Row]], bounds: Mapping[str, int]) -> Iterator[PendingTime]:
    """Waits that overlap the bounds, not clipped, those of a pod or workload one after the other."""
    yield from (_time(row, is_created=True) for row in _pages(rows, _PRICED_WAITS, bounds))
    yield from (_time(row, is_created=False) for row in _pages(rows, _PRICED_UNCREATED, bounds))


def _pages(rows: Callable[..., list[Row]], query: str, bounds: Mapping[str, int]) -> Iterator[Row]:
    return chain.from_iterable(_each_page(rows, query, bounds))


def _each_page(rows: Callable[..., list[Row]], query: str, bounds: Mapping[str, int]) -> Iterator[list[Row]]:
    after = {"namespace": "", "uid": "", "from": -(2**63)}
    while page := rows(query, {**bounds, **after}):
        yield page
        after = dict(zip(("namespace", "uid", "from"), page[-1], strict=False))


def _time(row: Row, *, is_created: bool) -> PendingTime:
    *own, reason, cause, tier, tenant, is_at_least, occupied = row[: -2 * _OF_PRICE]
    lowest, highest = (_price(row[first : first + _OF_PRICE or None]) for first in (-2 * _OF_PRICE, -_OF_PRICE))
    why = Reason(reason), WaitCause(cause), tier, tenant, lowest, is_created, bool(is_at_least)
    return PendingTime._make((*own, *why, occupied if tier else 0, highest))


def _price(columns: Row) -> Price | None:
    return None if columns[0] is None else price_of(*columns)
