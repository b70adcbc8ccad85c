"""When all pods of a gang ran at once for the first time: a pure function of the times of its pods."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from gputally.accounting.facts.outcome import outcome_of
from gputally.accounting.frameworks.pod_group import task_of
from gputally.model.allocation import Outcome
from gputally.model.pod_record import INCOMPLETE, PodRecord

_NO_TASKS: Final[Mapping[str, int]] = {}


def together_us(records: Iterable[PodRecord], size: int | None, tasks: Mapping[str, int] = _NO_TASKS) -> int | None:
    """When `size` of these pods ran for the first time, or all that belong to the gang if its size is not known.

    Among them must be so many of each of the `tasks`. None if that has not happened yet. A pod that succeeded did its
    part, so that it still counts.
    """
    return _all_us(records) if size is None else _some_us(records, size, tasks)


def until_us(record: PodRecord) -> int:
    """Until when a pod works for its gang: its end or the request of its deletion; `INCOMPLETE` for neither."""
    if record.end_us is not None and outcome_of(record) is Outcome.SUCCEEDED:
        return INCOMPLETE
    return min((each for each in (record.deletion_us, record.end_us) if each is not None), default=INCOMPLETE)


def _some_us(records: Iterable[PodRecord], size: int, tasks: Mapping[str, int]) -> int | None:
    running, of_task = 0, Counter[str]()
    for at_us, change, task in sorted(_changes(records)):
        running += change
        of_task[task] += change
        if running >= size and all(of_task[each] >= least for each, least in tasks.items()):
            return at_us
    return None


def _changes(records: Iterable[PodRecord]) -> Iterator[tuple[int, int, str]]:
    """Starts and ends with the task of the pod; of the same instant, ends come first."""
    for record in records:
        if record.started_us is not None and record.started_us < (end_us := until_us(record)):
            task = task_of(record)
            yield record.started_us, 1, task
            yield end_us, -1, task


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
