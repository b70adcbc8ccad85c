"""When all pods of a gang ran at once for the first time: a pure function of the times of its pods."""

from collections.abc import Iterable, Iterator

from gputally.accounting.pods.outcome import outcome_of
from gputally.model.allocation import Outcome
from gputally.model.pod import INCOMPLETE, PodRecord


def together_us(records: Iterable[PodRecord], size: int | None) -> int | None:
    """When `size` of these pods ran for the first time, or all that belong to the gang if its size is not known.

    None if that has not happened yet. A pod that succeeded did its part, so that it still counts.
    """
    return _all_us(records) if size is None else _some_us(records, size)


def until_us(record: PodRecord) -> int:
    """Until when a pod works for its gang: its end or the request of its deletion; `INCOMPLETE` for neither."""
    if record.end_us is not None and outcome_of(record) is Outcome.SUCCEEDED:
        return INCOMPLETE
    return min((each for each in (record.deletion_us, record.end_us) if each is not None), default=INCOMPLETE)


def _some_us(records: Iterable[PodRecord], size: int) -> int | None:
    running = 0
    for at_us, change in sorted(_changes(records)):
        running += change
        if running >= size:
            return at_us
    return None


def _changes(records: Iterable[PodRecord]) -> Iterator[tuple[int, int]]:
    """Starts and ends; of the same instant, ends come first."""
    for record in records:
        if record.started_us is not None and record.started_us < (end_us := until_us(record)):
            yield record.started_us, 1
            yield end_us, -1


def _all_us(records: Iterable[PodRecord]) -> int | None:
    """Pods that were created after all others had started are replacements."""
    found: int | None = None
    for record in sorted(records, key=lambda each: each.created_us):
        if found is not None and record.created_us > found:
            return found
        if until_us(record) == INCOMPLETE:
            if record.started_us is None:
                return None
            found = max(found or 0, record.started_us)
    return found
