"""Observation gaps, and the segments of allocations that ended in one."""

import json
from collections.abc import Iterator
from typing import Final

from gputally.ledger.price_columns import PRICE
from gputally.ledger.records import AllocationRecord, GapSegment, GapSubject, ObservationGap, SegmentRecord, Window
from gputally.ledger.sqlite import allocation_views
from gputally.ledger.sqlite.allocation_views import POD_COLUMNS
from gputally.ledger.sqlite.dictionary import TERMS
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.model.allocation import Gap

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
SELECT DISTINCT p.uid FROM pod_revisions r CROSS JOIN pods p ON p.id = r.pod
WHERE r.gap_from_us < :end AND r.gap_to_us > :start
ORDER BY p.uid
"""
"""Pods with a revision that ended in a gap that overlaps the window."""

WATCH_GAPS: Final = """
SELECT '', kind, max(from_us, :start), min(to_us, :end) FROM interruptions
WHERE max(from_us, :start) < min(to_us, :end)
ORDER BY kind, from_us
"""
NODE_GAPS: Final = """
SELECT node_uid, node, max(gone_us, :start), min(gone_by_us, :end) FROM node_ends
WHERE max(gone_us, :start) < min(gone_by_us, :end)
ORDER BY node_uid
"""


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


def read_ended_in_gaps(rows: Rows, window: Window, page: int) -> Iterator[GapSegment]:
    """See `LedgerReader.ended_in_gaps`; a transaction has at most `page` pods."""
    bounds = {"start": window.start_us, "end": window.end_us}
    uids = [uid for (uid,) in rows(WITH_GAPS, bounds)]
    for i in range(0, len(uids), page):
        wanted = bounds | {"uids": json.dumps(uids[i : i + page])}
        for *row, from_us, to_us in rows(ENDED_IN_GAPS, wanted):
            yield _gap_segment(allocation_views.segment(tuple(row)), Gap(from_us=from_us, to_us=to_us), window)


def _gap_segment(record: SegmentRecord, gap: Gap, window: Window) -> GapSegment:
    segment = record.segment
    end_us = gap.from_us if segment.end_us is None else segment.end_us
    charged_us = min(end_us, window.end_us) - max(segment.start_us, window.start_us)
    most_us = min(gap.to_us, window.end_us) - max(gap.from_us, window.start_us) if end_us == gap.from_us else 0
    gpu_time, most = (max(span_us, 0) * segment.quantity for span_us in (charged_us, most_us))
    return GapSegment(record, end_us, gpu_time, most, gap.to_us - gap.from_us)
