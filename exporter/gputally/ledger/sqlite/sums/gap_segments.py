"""Reads segments of allocations whose end is only known to be in a gap."""

import json
from collections.abc import Iterator

from gputally.ledger.records import GapSegment, SegmentRecord, Window
from gputally.ledger.sqlite import queries
from gputally.ledger.sqlite.sums.names import Rows
from gputally.model.allocation import Gap


def read_ended_in_gaps(rows: Rows, window: Window, page: int) -> Iterator[GapSegment]:
    """See `LedgerReader.ended_in_gaps`; a transaction has at most `page` pods."""
    bounds = {"start": window.start_us, "end": window.end_us}
    uids = [uid for (uid,) in rows(queries.WITH_GAPS, bounds)]
    for i in range(0, len(uids), page):
        wanted = bounds | {"uids": json.dumps(uids[i : i + page])}
        for *row, from_us, to_us in rows(queries.ENDED_IN_GAPS, wanted):
            yield _gap_segment(queries.segment(tuple(row)), Gap(from_us=from_us, to_us=to_us), window)


def _gap_segment(record: SegmentRecord, gap: Gap, window: Window) -> GapSegment:
    segment = record.segment
    end_us = gap.from_us if segment.end_us is None else segment.end_us
    charged_us = min(end_us, window.end_us) - max(segment.start_us, window.start_us)
    most_us = min(gap.to_us, window.end_us) - max(gap.from_us, window.start_us) if end_us == gap.from_us else 0
    gpu_time, most = (max(span_us, 0) * segment.quantity for span_us in (charged_us, most_us))
    return GapSegment(record, end_us, gpu_time, most, gap.to_us - gap.from_us)
