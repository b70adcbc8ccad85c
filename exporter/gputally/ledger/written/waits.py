"""Waits for GPUs, of pods and of workloads whose pods do not exist."""

from collections.abc import Iterator

from gputally.accounting.changes import Changes
from gputally.ledger.tables.table import Row
from gputally.ledger.tables.waits import UNCREATED_WAITS, WAITS
from gputally.model.price import Price
from gputally.model.waits import PendingSegmentRow, UncreatedPodsSegment


def waits(changes: Changes) -> Iterator[Row]:
    """New waits, and those with another end."""
    return (_row(each) for each in changes.waits.values() if each)


def withdrawn_waits(changes: Changes) -> Iterator[Row]:
    """Waits that were charged otherwise later."""
    return (key for key, each in changes.waits.items() if each is None)


def _row(row: PendingSegmentRow) -> Row:
    wait = row.wait
    occupying_tier, occupying_tenant = wait.occupant or ("", "")
    return WAITS.new(
        pod_uid=row.uid,
        from_us=wait.from_us,
        to_us=wait.to_us,
        namespace=row.namespace,
        name=row.name,
        tier=wait.tier,
        tenant=wait.tenant,
        quantity=wait.quantity,
        reason=wait.reason,
        cause=wait.cause,
        occupying_tier=occupying_tier,
        occupying_tenant=occupying_tenant,
        price_key=wait.price.key if wait.price else None,
        occupied=wait.occupied,
        highest_price_key=wait.highest.key if wait.highest else None,
    )


def uncreated_waits(changes: Changes) -> Iterator[Row]:
    """New waits, and those with another end."""
    return (_uncreated_row(each) for each in changes.uncreated_waits.values() if each)


def withdrawn_uncreated_waits(changes: Changes) -> Iterator[Row]:
    """Waits that were charged otherwise later."""
    return (key for key, each in changes.uncreated_waits.items() if each is None)


def _uncreated_row(each: UncreatedPodsSegment) -> Row:
    return UNCREATED_WAITS.new(
        namespace=each.namespace,
        workload_uid=each.uid,
        from_us=each.from_us,
        to_us=each.to_us,
        kind=each.kind,
        name=each.name,
        job_kind=each.job_kind,
        job=each.job,
        tier=each.tier,
        tenant=each.tenant,
        pods=each.pods,
        quantity=each.quantity,
        reason=each.reason.value,
        cause=each.cause.value,
        price_key=each.price.key if each.price else None,
        is_at_least=each.is_at_least,
        highest_price_key=each.highest.key if each.highest else None,
    )


def prices_of_waits(changes: Changes) -> Iterator[Price]:
    """The prices of all new waits, those of pods too."""
    for row in filter(None, changes.waits.values()):
        yield from filter(None, (row.wait.price, row.wait.highest))
    for each in filter(None, changes.uncreated_waits.values()):
        yield from filter(None, (each.price, each.highest))
