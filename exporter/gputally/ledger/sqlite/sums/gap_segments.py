"""Reads segments with their pods, and those of allocations whose end is only known to be in a gap."""

import json
from collections.abc import Iterator

from gputally.ledger.records import GapSegment, SegmentRecord, Window
from gputally.ledger.sqlite import queries
from gputally.ledger.sqlite.segment_rows import Row, price_of, segment_of
from gputally.ledger.sqlite.sums.names import Rows
from gputally.model.allocation import Gap, Outcome


def read_ended_in_gaps(rows: Rows, window: Window, page: int) -> Iterator[GapSegment]:
    """See `LedgerReader.ended_in_gaps`; a transaction has at most `page` pods."""
    bounds = {"start": window.start_us, "end": window.end_us}
    uids = [uid for (uid,) in rows(queries.WITH_GAPS, bounds)]
    for i in range(0, len(uids), page):
        wanted = bounds | {"uids": json.dumps(uids[i : i + page])}
        for *row, from_us, to_us in rows(queries.ENDED_IN_GAPS, wanted):
            yield _gap_segment(segment_record(tuple(row)), Gap(from_us=from_us, to_us=to_us), window)


def segment_record(row: Row) -> SegmentRecord:
    """The segment in a row of `queries.SEGMENTS`."""
    pods = len(queries.POD_COLUMNS)
    pod, span, terms, price = row[:pods], row[pods : pods + 3], row[pods + 3 : -5], row[-5:]
    segment = segment_of(span, terms, price_of(*price) if price[0] else None)
    values = dict(zip(queries.POD_COLUMNS, pod, strict=True))
    outcomes = {name: Outcome(values[name]) for name in ("outcome", "job_outcome")}
    return SegmentRecord(**values | outcomes, segment=segment)


def _gap_segment(record: SegmentRecord, gap: Gap, window: Window) -> GapSegment:
    segment = record.segment
    end_us = gap.from_us if segment.end_us is None else segment.end_us
    charged_us = min(end_us, window.end_us) - max(segment.start_us, window.start_us)
    most_us = min(gap.to_us, window.end_us) - max(gap.from_us, window.start_us) if end_us == gap.from_us else 0
    quantity, gap_us = segment.quantity, gap.to_us - gap.from_us
    return GapSegment(record, max(charged_us, 0) * quantity, max(most_us, 0) * quantity, gap_us)
