"""When an allocation gets a new revision, and the upgrade of records from earlier versions."""

from msgspec.structs import replace

from gputally.accounting.facts.outcome import outcome_of
from gputally.model.allocation import End, Ending, Gap
from gputally.model.pod_record import PodRecord

POD_READING = "6"
"""Raise this when classification or accounting of pods changes: a restart then reprocesses earlier records."""


def has_same_revision(before: PodRecord, record: PodRecord) -> bool:
    """Whether all fields of an allocation's revision are equal, apart from the segments."""
    return _revision_fields(before) == _revision_fields(record)


def counts_equally(before: PodRecord, record: PodRecord) -> bool:
    """Whether both have the same revision and count alike as jobs: a pod that has not ended does not.

    One that has ended may belong to a Job, or an earlier version has not counted it: whoever counts jobs decides.
    """
    if record.ending is None or record.counted is None:
        return record.ending is None and before.ending is None and has_same_revision(before, record)
    return before.counted is not None and has_same_revision(before, record)


def _revision_fields(record: PodRecord) -> tuple[object, ...]:
    times = record.scheduled_us, record.end_us, record.gap
    return record.node_uid, record.job, *times, record.result, outcome_of(record)


def upgraded(record: PodRecord) -> PodRecord:
    """`record` with `ending` added if an earlier version stored only the end; an end by the node has no `ending`."""
    if record.ending or record.end_by in (None, End.NODE) or record.end_us is None:
        return record
    gap = record.gap or Gap(from_us=record.end_us, to_us=record.end_us)
    return replace(record, ending=Ending(by=record.end_by, from_us=gap.from_us, to_us=gap.to_us))
