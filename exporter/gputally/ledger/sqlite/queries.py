"""The queries of the SQLite ledger reader, and the records from their rows.

They use the views, which include the rows of older schemas.

Parameters are the window [:start, :end), the end of accounting :accounted, and pods with UIDs in (:after, :upto].
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from msgspec import Struct, convert

from gputally.ledger.preemption_records import PreemptionRecord
from gputally.ledger.price_columns import PRICE, price_of
from gputally.ledger.records import AllocationRecord, GapSubject, ObservationGap, SegmentRecord, Window
from gputally.ledger.sqlite.segment_rows import TERMS, Row, segment_of
from gputally.model.allocation import End, Gap, Outcome
from gputally.model.disruptions.disruption import DisruptionRecord

Record = TypeVar("Record", bound=Struct)
_FROM: Final = "max(start_us, :start)"
_TO: Final = "min(ifnull(end_us, :accounted), :end)"
_PAGE: Final = "pod_uid > :after AND pod_uid <= :upto"

TEXTS: Final = "SELECT id, text FROM texts WHERE id IN (SELECT value FROM json_each(:ids))"
DETAIL_START: Final = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'detail_start_us'"
META: Final = "SELECT key, value FROM meta"
ROLL_UPS: Final = "SELECT value FROM meta WHERE key = 'roll_ups'"
"""Changes whenever allocations are rolled up."""
NEXT_PAGE: Final = """
SELECT uid FROM pods WHERE uid > :after
UNION SELECT pod_uid FROM old_allocations WHERE pod_uid > :after
ORDER BY uid LIMIT 1 OFFSET :pods
"""
"""The last UID of a page of :pods + 1 pods, if there are that many."""

POD_COLUMNS: Final = (
    *("pod_uid", "namespace", "name", "node", "node_uid"),
    *("job_kind", "job", "outcome", "job_outcome", "revision"),
)
SEGMENTS: Final = f"""
SELECT {", ".join(POD_COLUMNS)}, {_FROM}, {_TO}, quantity, {", ".join(TERMS)}, price_key, {", ".join(PRICE)}
FROM allocation_segments
WHERE {_PAGE} AND {_FROM} < {_TO}
ORDER BY pod_uid, start_us, ordinal
"""  # noqa: S608 (literals only)

LAST_SEGMENT: Final = f"""
SELECT {", ".join(POD_COLUMNS)}, start_us, ifnull(end_us, :accounted), quantity, {", ".join(TERMS)},
       price_key, {", ".join(PRICE)}
FROM allocation_segments
WHERE pod_uid = (
    SELECT pod_uid FROM allocations WHERE name = :name AND namespace = :namespace ORDER BY created_us DESC LIMIT 1
)
ORDER BY start_us DESC, ordinal DESC LIMIT 1
"""  # noqa: S608 (literals only)
"""Of the last pod of a name: a scan of all pods, since no index has their names."""

ENDED_IN_GAPS: Final = f"""
SELECT {", ".join(f"s.{name}" for name in POD_COLUMNS)}, s.start_us, s.end_us, quantity, {", ".join(TERMS)},
       price_key, {", ".join(PRICE)}, a.gap_from_us, a.gap_to_us
FROM json_each(:uids) AS wanted
CROSS JOIN allocation_segments s ON s.pod_uid = wanted.value
JOIN allocations a ON a.pod_uid = s.pod_uid AND a.revision = s.revision
WHERE a.gap_from_us < :end AND a.gap_to_us > :start
ORDER BY s.pod_uid, s.start_us
"""  # noqa: S608 (literals only)
WITH_GAPS: Final = """
SELECT DISTINCT pod_uid FROM allocations WHERE gap_from_us < :end AND gap_to_us > :start ORDER BY pod_uid
"""
"""Pods with a revision that ended in a gap that overlaps the window: one scan without their names."""

ALLOCATION_COLUMNS: Final = (
    *("pod_uid", "revision", "recorded_us", "namespace", "name", "node", "node_uid", "class_name", "priority"),
    *("job_kind", "job", "created_us", "scheduled_us", "started_us", "deletion_us", "end_us"),
    *("phase", "reason", "exit_code"),
)
_ALLOCATIONS: Final = f"""
SELECT {", ".join(ALLOCATION_COLUMNS)}, end_by, gap_from_us, gap_to_us, outcome FROM allocations
"""  # noqa: S608 (literals only)
ALLOCATIONS: Final = f"""
{_ALLOCATIONS} WHERE {_PAGE} AND pod_uid IN (
    SELECT pod_uid FROM allocation_segments WHERE {_PAGE} AND {_FROM} < {_TO}
)
ORDER BY pod_uid, revision
"""  # noqa: S608 (literals only)
"""All revisions of the allocations that overlap the window."""
ALLOCATION: Final = f"{_ALLOCATIONS} WHERE pod_uid = :uid ORDER BY revision"

_LINEAGE: Final = """
lineage (node_uid, bound_to) AS (
    SELECT node_uid, node_uid FROM node_ends
    UNION SELECT l.node_uid, r.continues FROM lineage l JOIN reregistrations r ON r.node_uid = l.bound_to
)"""
_LOST: Final = "(SELECT * FROM node_ends WHERE max(gone_us, :start) < min(gone_by_us, :end))"
LAST_ALLOCATED: Final = f"""
WITH RECURSIVE {_LINEAGE}
SELECT e.node_uid, max(min(e.gone_by_us, ifnull(s.end_us, :accounted)))
FROM {_LOST} e
JOIN lineage l ON l.node_uid = e.node_uid
JOIN (SELECT * FROM allocation_segments WHERE {_PAGE} AND quantity > 0) s
  ON s.node_uid = l.bound_to AND s.start_us < e.gone_by_us AND ifnull(s.end_us, :accounted) > e.gone_us
GROUP BY e.node_uid
"""  # noqa: S608 (literals only)
"""The end of the last allocation on each node that was deleted at an unknown time in the window.

A pod is on the node that it was bound to, and on those that continue it; another one may have the same name.
"""
_HELD: Final = """
held AS (
    SELECT node_uid_text, at_us AS from_us,
           sum(change) OVER (PARTITION BY node_uid_text ORDER BY at_us) AS quantity,
           lead(at_us) OVER (PARTITION BY node_uid_text ORDER BY at_us) AS to_us
    FROM node_steps
)"""
"""What was allocated on each node by allocations that are rolled up."""
LAST_ROLLED_UP: Final = f"""
WITH RECURSIVE {_LINEAGE}, {_HELD}
SELECT e.node_uid, max(min(e.gone_by_us, s.to_us))
FROM {_LOST} e
JOIN lineage l ON l.node_uid = e.node_uid
JOIN texts t ON t.text = l.bound_to
JOIN held s ON s.node_uid_text = t.id AND s.quantity > 0 AND s.from_us < e.gone_by_us AND s.to_us > e.gone_us
GROUP BY e.node_uid
"""  # noqa: S608 (literals only)
"""The same of allocations that are rolled up."""
ROLLED_STEPS: Final = f"""
WITH {_HELD}
SELECT node_uid_text, quantity, max(from_us, :start) AS start_us, min(to_us, :end) AS end_us
FROM held
WHERE quantity > 0 AND from_us < :end AND to_us > :start
  AND :start < (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'detail_start_us')
"""  # noqa: S608 (literals only)
"""Node, µGPU, start and end of what was allocated by allocations that are rolled up."""
CAPACITY: Final = f"""
WITH facts AS (
    SELECT c.*, c.from_us AS start_us, min(
        ifnull(lead(c.from_us) OVER (PARTITION BY c.node_uid ORDER BY c.from_us), :accounted),
        ifnull(
            (SELECT value FROM json_each(:held) WHERE key = c.node_uid),
            ifnull((SELECT gone_us FROM node_ends e WHERE e.node_uid = c.node_uid), :accounted)
        )
    ) AS end_us
    FROM capacity c
)
SELECT node_uid, node, {_FROM}, {_TO}, physical, covered, allocatable, ifnull(divided, 0), ready, cordoned,
       instance_type, gpu_model, pool, purchase, ifnull(price_labels, '{{}}'),
       ifnull((SELECT continues FROM reregistrations r WHERE r.node_uid = facts.node_uid), '')
FROM facts
WHERE {_FROM} < {_TO}
ORDER BY node_uid, start_us
"""  # noqa: S608 (literals only)
"""With :held, the end of the last allocation on each node that was deleted at an unknown time (JSON, by node UID)."""

ASSET_PRICES: Final = f"""
SELECT instance_type, gpu_model, pool, a.purchase, price_labels, from_us,
       p.price_key, {", ".join(f"p.{column}" for column in PRICE)}
FROM capacity_prices a LEFT JOIN prices p ON p.price_key = a.price_key
ORDER BY from_us
"""  # noqa: S608 (literals only)

PREEMPTIONS: Final = f"""
SELECT {", ".join(PreemptionRecord.__struct_fields__)}
FROM preemptions p
WHERE decided_us >= :start AND decided_us < :end
  AND recorded_us = (SELECT max(recorded_us) FROM preemptions WHERE victim_uid = p.victim_uid)
ORDER BY decided_us, victim_uid
"""  # noqa: S608 (literals only)

DECIDED: Final = "decided_us >= :start AND decided_us < :end AND cause IN (SELECT value FROM json_each(:causes))"
"""The victims of disruptions for the :causes (JSON) that were decided in the window [:start, :end)."""
DISRUPTIONS: Final = f"""
SELECT {", ".join(DisruptionRecord.__struct_fields__)} FROM disruptions
WHERE {DECIDED} AND (:job = '' OR (job = :job AND victim_namespace = :namespace))
ORDER BY decided_us, victim_uid
"""  # noqa: S608 (literals only)

WATCH_GAPS: Final = """
SELECT '', kind, max(from_us, :start), min(to_us, :end) FROM interruptions
WHERE max(from_us, :start) < min(to_us, :end)
ORDER BY kind, from_us
"""
ENDED_IN_GAP: Final = f"""
SELECT DISTINCT pod_uid FROM allocations
WHERE {_PAGE} AND max(gap_from_us, :start) < min(gap_to_us, :end)
ORDER BY pod_uid
"""  # noqa: S608 (literals only)
"""Pods with a revision that ended in a gap of the window."""
NODE_GAPS: Final = """
SELECT node_uid, node, max(gone_us, :start), min(gone_by_us, :end) FROM node_ends
WHERE max(gone_us, :start) < min(gone_by_us, :end)
ORDER BY node_uid
"""
UNACCOUNTED_DAYS: Final = """
SELECT document FROM working WHERE kind = 'unaccounted-day' AND uid >= :first AND uid < :last ORDER BY uid
"""
"""Documents of `UnaccountedDay`, whose keys begin with the day."""


def record_of(type_: type[Record], row: Row) -> Record:
    """A record whose fields are the columns of the row."""
    return convert(dict(zip(type_.__struct_fields__, row, strict=True)), type_, strict=False)


def records_of(type_: type[Record], rows: Iterable[Row]) -> Iterator[Record]:
    """Records whose fields are the columns of the rows."""
    return (record_of(type_, row) for row in rows)


def segment(row: Row) -> SegmentRecord:
    """One row of SEGMENTS."""
    pods = len(POD_COLUMNS)
    pod, span, terms, price = row[:pods], row[pods : pods + 3], row[pods + 3 : -5], row[-5:]
    segment = segment_of(span, terms, price_of(*price) if price[0] else None)
    values = dict(zip(POD_COLUMNS, pod, strict=True))
    outcomes = {name: Outcome(values[name]) for name in ("outcome", "job_outcome")}
    return SegmentRecord(**values | outcomes, segment=segment)


def allocation(row: Row) -> AllocationRecord:
    """One row of ALLOCATION."""
    *plain, end_by, from_us, to_us, outcome = row
    return AllocationRecord(
        **dict(zip(ALLOCATION_COLUMNS, plain, strict=False)),
        end_by=End(end_by) if end_by else None,
        gap=None if from_us is None else Gap(from_us=from_us, to_us=to_us),
        outcome=Outcome(outcome),
    )


def gap(subject: GapSubject, row: Row) -> ObservationGap:
    """One gap from its UID, name, start and end."""
    uid, name, start_us, end_us = row
    return ObservationGap(subject=subject, uid=uid, name=name, start_us=start_us, end_us=end_us)


def gap_of(record: AllocationRecord, window: Window) -> Iterator[ObservationGap]:
    """The gap in which the allocation ended by its latest revision, clipped to the window."""
    if record.gap:
        start_us, end_us = max(record.gap.from_us, window.start_us), min(record.gap.to_us, window.end_us)
        if start_us < end_us:
            yield gap(GapSubject.ALLOCATION, (record.pod_uid, f"{record.namespace}/{record.name}", start_us, end_us))
