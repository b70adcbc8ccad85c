"""Waits of workloads whose pods do not exist, as rows of the ledger."""

from collections.abc import Iterator
from typing import Any, Final

from gputally.accounting.changes.changes import Changes
from gputally.model.placement.uncreated_wait import UncreatedWait
from gputally.model.price import Price

Row = tuple[Any, ...]
UPSERT_UNCREATED: Final = (
    "INSERT OR REPLACE INTO uncreated_waits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
DELETE_UNCREATED: Final = "DELETE FROM uncreated_waits WHERE namespace = ? AND workload_uid = ? AND from_us = ?"
DELETE_OLD_UNCREATED: Final = """
DELETE FROM uncreated_waits WHERE (namespace, workload_uid, from_us) IN (
    SELECT namespace, workload_uid, from_us FROM uncreated_waits
    WHERE from_us < :before AND to_us < :before LIMIT :rows
)
"""


def uncreated_waits(changes: Changes) -> Iterator[Row]:
    """New waits, and those with another end."""
    return (_row(each) for each in changes.uncreated_waits.values() if each)


def withdrawn_uncreated_waits(changes: Changes) -> Iterator[Row]:
    """Waits that were charged otherwise later."""
    return (key for key, each in changes.uncreated_waits.items() if each is None)


def prices_of_waits(changes: Changes) -> Iterator[Price]:
    """The prices of all new waits, those of pods too."""
    for row in filter(None, changes.waits.values()):
        yield from filter(None, (row.wait.price, row.wait.highest))
    for each in filter(None, changes.uncreated_waits.values()):
        yield from filter(None, (each.price, each.highest))


def _row(each: UncreatedWait) -> Row:
    workload = each.namespace, each.uid, each.from_us, each.to_us, each.kind, each.name, each.job_kind, each.job
    why = each.tier, each.tenant, each.pods, each.quantity, each.reason.value, each.cause.value
    lowest, highest = each.price.key if each.price else None, each.highest.key if each.highest else None
    return *workload, *why, lowest, each.is_at_least, highest
