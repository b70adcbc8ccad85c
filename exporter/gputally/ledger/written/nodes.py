"""What nodes offered, what it cost, when they ended, and what agents on them reported."""

import json
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from gputally.accounting.changes import Changes
from gputally.ledger.tables.nodes import CAPACITY, CAPACITY_PRICES, NODE_ENDS, REREGISTRATIONS
from gputally.ledger.tables.statements import listed, marks, on_conflict
from gputally.ledger.tables.table import Row
from gputally.ledger.tables.usage import UNALLOCATED_USAGE, USAGE_ASSIGNMENTS, USAGE_HOURS
from gputally.model.price import Asset
from gputally.model.usage import AssignmentKey, AssignmentRecord

_facts: Final = attrgetter(*USAGE_ASSIGNMENTS.rest)
_OF_KEY: Final = " AND ".join(f"{name} = ?" for name in AssignmentKey._fields)
_REPORTED: Final = ("start_us", *USAGE_HOURS.rest)
UPSERT_HOUR: Final = f"""
INSERT INTO usage_hours (assignment, {listed(_REPORTED)})
SELECT assignment, {marks(_REPORTED)} FROM usage_assignments WHERE {_OF_KEY}
{on_conflict(USAGE_HOURS)}
"""  # noqa: S608 (literals only)
"""A row has the values of _REPORTED, then the key of its assignment."""


def capacity(changes: Changes) -> Iterator[Row]:
    """New facts of nodes."""
    for (uid, from_us), (name, facts) in changes.capacity.items():
        yield CAPACITY.new(
            node_uid=uid,
            from_us=from_us,
            recorded_us=changes.at_us,
            node=name,
            physical=facts.physical,
            covered=facts.covered,
            allocatable=facts.allocatable,
            ready=facts.ready,
            cordoned=facts.cordoned,
            gpu_model=facts.gpu_model,
            pool=facts.pool,
            instance_type=facts.asset.instance_type,
            purchase=facts.asset.purchase.value,
            divided=facts.divided,
            price_labels=price_labels(facts.asset),
        )


def asset_prices(changes: Changes) -> Iterator[Row]:
    """New prices of capacity."""
    for (asset, from_us), price in changes.asset_prices.items():
        yield CAPACITY_PRICES.new(
            instance_type=asset.instance_type,
            gpu_model=asset.gpu_model,
            pool=asset.pool,
            purchase=asset.purchase.value,
            price_labels=price_labels(asset),
            from_us=from_us,
            price_key=price.key if price else None,
        )


def price_labels(asset: Asset) -> str:
    """The labels of a node that price rules name, as JSON."""
    return json.dumps(dict(asset.labels), separators=(",", ":"))


def node_ends(changes: Changes) -> Iterator[Row]:
    """Deleted nodes, with the latest possible time of deletion if the exact time is unknown."""
    for record in filter(None, changes.nodes.values()):
        if record.gone_us is not None:
            by_us = record.gone_by_us
            is_late = by_us is not None and by_us > record.gone_us
            yield NODE_ENDS.new(record.uid, record.name, record.gone_us, gone_by_us=by_us if is_late else None)


def reregistrations(changes: Changes) -> Iterator[Row]:
    """Nodes whose machine had another UID before."""
    nodes = filter(None, changes.nodes.values())
    return (REREGISTRATIONS.new(node.uid, node.continues) for node in nodes if node.continues)


def assignments(changes: Changes) -> Iterator[Row]:
    """The latest report of each device assignment, once."""
    latest: dict[AssignmentKey, AssignmentRecord] = {}
    for row in changes.assignment_usage.values():
        known = latest.get(row.assignment.key)
        if known is None or _report_order(known) <= _report_order(row.assignment):
            latest[row.assignment.key] = row.assignment
    for assignment in latest.values():
        yield *assignment.key, *_facts(assignment)


def _report_order(assignment: AssignmentRecord) -> tuple[int, bool, bool]:
    return assignment.seen_us, assignment.until_us is not None, assignment.pod_uid is not None


def hours(changes: Changes) -> Iterator[Row]:
    """Latest hours of device assignments; byte·µs as text, since they outgrow 64 bits."""
    for row in changes.assignment_usage.values():
        hour = row.hour
        spans = (hour.start_us, hour.from_us, hour.to_us)
        memory = (str(hour.memory), hour.memory_us)
        yield *spans, hour.measured, hour.used, hour.burst, *memory, hour.energy, row.open, *row.assignment.key


def unallocated(changes: Changes) -> Iterator[Row]:
    """Latest hours of GPUs outside any allocation."""
    for row in changes.unallocated_usage.values():
        yield UNALLOCATED_USAGE.new(*row.key, row.node, row.hour.unattributed, row.hour.energy, row.open)
