"""Between the structs of the accounting and the rows of the ledger."""

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.ledger.protocol import Entry, Line
from gputally.model.allocation import Segment, State
from gputally.model.pod import PodRecord
from gputally.model.price import Basis, Price, Purchase
from gputally.model.units import PICO

Row = tuple[Any, ...]
_STATES: Final = {state.value: state for state in State}


def _insert(columns: int, into: str) -> str:
    return f"INSERT OR {into} VALUES ({', '.join('?' * columns)})"  # noqa: S608 (literals only)


INSERT_ALLOCATION: Final = _insert(19, "IGNORE INTO allocations")
INSERT_SEGMENT: Final = _insert(17, "ABORT INTO segments")
INSERT_PRICE: Final = _insert(5, "IGNORE INTO prices")
INSERT_CAPACITY: Final = _insert(13, "REPLACE INTO capacity")
INSERT_NODE_END: Final = _insert(3, "IGNORE INTO node_ends")
INSERT_PREEMPTION: Final = _insert(15, "REPLACE INTO preemptions")
INSERT_INTERRUPTION: Final = _insert(3, "REPLACE INTO interruptions")
UPSERT_SERIES: Final = _insert(8, "REPLACE INTO series")
SELECT_SPANS: Final = """
SELECT a.pod_uid, a.revision, s.start_us, s.end_us, s.quantity
FROM json_each(?) AS uid
JOIN allocations a
  ON a.pod_uid = uid.value AND a.revision = (SELECT max(revision) FROM allocations WHERE pod_uid = uid.value)
LEFT JOIN segments s ON s.pod_uid = a.pod_uid AND s.revision = a.revision
"""
"""The current revision of each UID of a JSON array with its segments: one statement, as one for each pod takes longer
than writing them."""
_SEGMENT: Final = """
s.resource, s.start_us, s.end_us, s.state, s.quantity, s.tier, s.tenant, s.queue, s.gpu_model, s.pool, s.price_key,
s.label_tier, s.label_tenant, s.label_gpu_model, p.currency, p.per_gpu_hour, p.basis, p.purchase
"""
SELECT_WORKING_SEGMENTS: Final = f"""
SELECT w.uid, s.revision, {_SEGMENT}
FROM working w
JOIN segments s
  ON s.pod_uid = w.uid AND s.revision = (SELECT max(revision) FROM allocations WHERE pod_uid = w.uid)
LEFT JOIN prices p ON p.price_key = s.price_key
WHERE w.kind = ?
ORDER BY w.uid, s.ordinal
"""  # noqa: S608 (literals only)
OVERLAPPING: Final = f"""
SELECT s.pod_uid, a.namespace, a.name, a.node, a.job_kind, a.job, s.revision, {_SEGMENT}
FROM current_segments s
JOIN allocations a ON a.pod_uid = s.pod_uid AND a.revision = s.revision
LEFT JOIN prices p ON p.price_key = s.price_key
WHERE s.start_us < ? AND (s.end_us IS NULL OR s.end_us > ?)
ORDER BY s.start_us, s.pod_uid, s.ordinal
"""  # noqa: S608 (literals only)


def allocation(record: PodRecord, recorded_us: int) -> Row:
    """One revision of an allocation."""
    return (
        record.uid,
        record.revision,
        recorded_us,
        record.namespace,
        record.name,
        record.node,
        record.node_uid,
        record.class_name,
        record.priority,
        record.job_kind,
        record.job,
        record.created_us,
        record.scheduled_us,
        record.started_us,
        record.deletion_us,
        record.end_us,
        record.end_by,
        record.blind.from_us if record.blind else None,
        record.blind.to_us if record.blind else None,
    )


def segments(record: PodRecord) -> list[Row]:
    """All segments of the record's revision."""
    return [
        (
            record.uid,
            record.revision,
            ordinal,
            s.resource,
            s.start_us,
            s.end_us,
            s.state.value,
            s.quantity,
            s.tier,
            s.tenant,
            s.queue,
            s.gpu_model,
            s.pool,
            s.price.key if s.price else None,
            *s.labels[:3],
        )
        for ordinal, s in enumerate(record.segments)
    ]


def line_of(spans: Iterable[tuple[int, int | None, int]], opened_us: int) -> Line:
    """GPU-time since the books were opened, as the line (a, b)."""
    a = b = 0
    for start_us, end_us, quantity in spans:
        from_us = max(start_us, opened_us)
        if end_us is None:
            a, b = a - quantity * from_us, b + quantity
        else:
            a += quantity * max(0, end_us - from_us)
    return a, b


def entry(row: Row) -> Entry:
    """One row of OVERLAPPING."""
    uid, namespace, name, node, job_kind, job, revision, *rest = row
    return Entry(
        pod_uid=uid,
        namespace=namespace,
        name=name,
        node=node,
        job_kind=job_kind,
        job=job,
        revision=revision,
        segment=segment(rest),
    )


def segment(columns: Sequence[Any]) -> Segment:
    """The segment in the columns of _SEGMENT."""
    resource, start_us, end_us, state, quantity, tier, tenant, queue, gpu_model, pool, price_key, *tail = columns
    return Segment(
        resource=resource,
        start_us=start_us,
        end_us=end_us,
        state=_STATES[state],
        quantity=quantity,
        tier=tier,
        tenant=tenant,
        queue=queue,
        gpu_model=gpu_model,
        pool=pool,
        price=_price(price_key, *tail[3:]) if price_key else None,
        labels=(*tail[:3], state),
    )


@lru_cache(maxsize=1024)
def _price(key: str, currency: str, per_gpu_hour: str, basis: str, purchase: str) -> Price:
    amount = Decimal(per_gpu_hour)
    return Price(
        key=key,
        currency=currency,
        per_gpu_hour=amount,
        rate=int(amount * PICO),
        basis=Basis(basis),
        purchase=Purchase(purchase),
    )


def prices(changes: Changes) -> Iterator[Row]:
    """Every price the revised segments refer to."""
    found = {s.price.key: s.price for r in changes.revisions.values() for s in r.segments if s.price}
    for key, price in found.items():
        yield key, price.currency, format(price.per_gpu_hour, "f"), price.basis.value, price.purchase.value


def capacity(changes: Changes) -> Iterator[Row]:
    """The facts of the changed nodes; those recorded before are there already."""
    for record in filter(None, changes.nodes.values()):
        for from_us, f in record.facts:
            yield (
                record.uid,
                from_us,
                changes.at_us,
                record.name,
                f.physical,
                f.covered,
                f.allocatable,
                f.ready,
                f.cordoned,
                f.gpu_model,
                f.pool,
                f.asset.instance_type,
                f.asset.purchase.value,
            )


def node_ends(changes: Changes) -> Iterator[Row]:
    """Nodes that ceased to exist."""
    for record in filter(None, changes.nodes.values()):
        if record.gone_us is not None:
            yield record.uid, record.name, record.gone_us


def preemptions(changes: Changes) -> Iterator[Row]:
    """Preemptions as counted."""
    for p in changes.counted_preemptions.values():
        preemptor = p.preemptor
        yield (
            p.victim_uid,
            changes.at_us,
            p.victim_namespace,
            p.victim_name,
            p.victim_tier,
            p.victim_tenant,
            preemptor.uid if preemptor else None,
            preemptor.namespace if preemptor else None,
            preemptor.name if preemptor else None,
            p.counted[1] if p.counted else "",
            p.node,
            p.quantity,
            p.decided_us,
            p.requested_us,
            p.released_us,
        )


def interruptions(changes: Changes) -> Iterator[Row]:
    """Times nobody watched."""
    return ((kind.value, from_us, to_us) for (kind, from_us), to_us in changes.interruptions.items())


def series(changes: Changes) -> Iterator[Row]:
    """Changed counters; integers as text, since they outgrow 64 bits."""
    for (total, labels), s in changes.series.items():
        numbers = (str(s.a), str(s.b), str(s.floor))
        yield total.value, json.dumps(labels), s.created_us, *numbers, s.floor_us, s.exposed_us


def working(changes: Changes) -> Iterator[Row]:
    """Working state that changed; a pod's segments are in their own table."""
    encode = msgspec.json.Encoder().encode
    for kind, records in _working(changes):
        for uid, record in records.items():
            if isinstance(record, PodRecord):
                yield kind, uid, encode(replace(record, segments=()))
            elif record is not None:
                yield kind, uid, encode(record)


def dropped(changes: Changes) -> Iterator[Row]:
    """Working state no longer kept."""
    return ((kind, uid) for kind, records in _working(changes) for uid, record in records.items() if record is None)


def watches(changes: Changes) -> Iterator[Row]:
    """Where the watches have come to."""
    return ((kind.value, resume.version, resume.at_us, resume.rules) for kind, resume in changes.resumes.items())


def _working(changes: Changes) -> tuple[tuple[str, dict[str, Any]], ...]:
    return (
        ("pod", changes.pods),
        ("departed", changes.departed),
        ("node", changes.nodes),
        ("preemption", changes.preemptions),
        ("agent", changes.agents),
    )
