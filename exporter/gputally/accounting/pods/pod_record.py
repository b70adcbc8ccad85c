"""What makes a revision of an allocation, and what earlier versions kept of pods."""

from msgspec.structs import replace

from gputally.model.allocation import End, Ending, Gap
from gputally.model.pod import PodRecord

POD_READING = "2"
"""To be raised when pods are classified or accounted otherwise: restarts look again at those of an earlier version."""


def is_of_one_revision(before: PodRecord, record: PodRecord) -> bool:
    """Whether, besides its segments, all is the same that a revision of the allocation holds."""
    return _kept_of(before) == _kept_of(record)


def _kept_of(record: PodRecord) -> tuple[object, ...]:
    return record.node_uid, record.job, record.scheduled_us, record.end_us, record.gap


def upgraded(record: PodRecord) -> PodRecord:
    """A record whose end an earlier version kept without what it followed from; one by its node has none of its own."""
    if record.ending or record.end_by in (None, End.NODE) or record.end_us is None:
        return record
    gap = record.gap or Gap(from_us=record.end_us, to_us=record.end_us)
    return replace(record, ending=Ending(by=record.end_by, from_us=gap.from_us, to_us=gap.to_us))
