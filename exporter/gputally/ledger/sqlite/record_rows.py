"""Converts rows of the reader's queries to records."""

from collections.abc import Iterator

from gputally.ledger.records import AllocationRecord, GapSubject, ObservationGap, SegmentRecord, Window
from gputally.ledger.sqlite import queries
from gputally.ledger.sqlite.segment_rows import Row, price_of, segment_of
from gputally.model.allocation import End, Gap, Outcome


def segment(row: Row) -> SegmentRecord:
    """One row of SEGMENTS."""
    pods = len(queries.POD_COLUMNS)
    pod, span, terms, price = row[:pods], row[pods : pods + 3], row[pods + 3 : -5], row[-5:]
    segment = segment_of(span, terms, price_of(*price) if price[0] else None)
    values = dict(zip(queries.POD_COLUMNS, pod, strict=True))
    outcomes = {name: Outcome(values[name]) for name in ("outcome", "job_outcome")}
    return SegmentRecord(**values | outcomes, segment=segment)


def allocation(row: Row) -> AllocationRecord:
    """One row of ALLOCATION."""
    *plain, end_by, from_us, to_us, outcome = row
    return AllocationRecord(
        **dict(zip(queries.ALLOCATION_COLUMNS, plain, strict=False)),
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
