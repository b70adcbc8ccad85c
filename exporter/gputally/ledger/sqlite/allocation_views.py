"""Allocations and their segments as records, by the views.

Parameters are the window [:start, :end), the end of accounting :accounted, and pods with UIDs in (:after, :upto].
"""

from typing import Final

from gputally.ledger.price_columns import PRICE, price_of
from gputally.ledger.records import AllocationRecord, SegmentRecord
from gputally.ledger.sqlite.dictionary import TERMS, segment_of
from gputally.ledger.sqlite.rows import Row
from gputally.model.allocation import End, Gap, Outcome

CLIP_FROM: Final = "max(start_us, :start)"
CLIP_TO: Final = "min(ifnull(end_us, :accounted), :end)"
IN_PAGE: Final = "pod_uid > :after AND pod_uid <= :upto"

POD_COLUMNS: Final = (
    *("pod_uid", "namespace", "name", "node", "node_uid"),
    *("job_kind", "job", "outcome", "job_outcome", "revision"),
)
SEGMENTS: Final = f"""
SELECT {", ".join(POD_COLUMNS)}, {CLIP_FROM}, {CLIP_TO}, quantity, {", ".join(TERMS)}, price_key, {", ".join(PRICE)}
FROM allocation_segments
WHERE {IN_PAGE} AND {CLIP_FROM} < {CLIP_TO}
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
"""The last segment of the last pod of a name: a scan of all pods, since no index has their names."""

ALLOCATION_COLUMNS: Final = (
    *("pod_uid", "revision", "recorded_us", "namespace", "name", "node", "node_uid", "class_name", "priority"),
    *("job_kind", "job", "created_us", "scheduled_us", "started_us", "deletion_us", "end_us"),
    *("phase", "reason", "exit_code"),
)
_ALLOCATIONS: Final = f"""
SELECT {", ".join(ALLOCATION_COLUMNS)}, end_by, gap_from_us, gap_to_us, outcome FROM allocations
"""  # noqa: S608 (literals only)
ALLOCATIONS: Final = f"""
{_ALLOCATIONS} WHERE {IN_PAGE} AND pod_uid IN (
    SELECT pod_uid FROM allocation_segments WHERE {IN_PAGE} AND {CLIP_FROM} < {CLIP_TO}
)
ORDER BY pod_uid, revision
"""  # noqa: S608 (literals only)
"""All revisions of the allocations that overlap the window."""
ALLOCATION: Final = f"{_ALLOCATIONS} WHERE pod_uid = :uid ORDER BY revision"


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
