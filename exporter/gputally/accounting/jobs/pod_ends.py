"""How the pods of a Job ended, as far as that matters for how the Job did."""

from collections.abc import Mapping
from typing import Final

from gputally.accounting.facts.outcome import outcome_of
from gputally.model.allocation import Outcome
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND

SUCCEEDED: Final = "succeeded"
PREEMPTED: Final = "preempted"
DELETED: Final = "deleted"
NO_CODE: Final = -1
"""Stands for the exit code of a pod that ended without one."""
_KEPT_US: Final = 60 * US_PER_SECOND
"""A Job stops all of its pods at once: earlier deletions were somebody else's."""

PodEnd = tuple[str, int]
"""`SUCCEEDED` and 0, `PREEMPTED` and the exit code, or `DELETED` and the time of the request (µs)."""
CountedEnds = tuple[tuple[str, int, int], ...]
"""Ends, each with its number of pods."""


def end_of(record: PodRecord) -> PodEnd | None:
    """How the pod ended by its own object; None if it has not, or did in a way that does not matter."""
    result = record.result
    if record.ending is None:
        return None
    if outcome_of(record) is Outcome.PREEMPTED:
        return PREEMPTED, NO_CODE if result is None or result.exit_code is None else result.exit_code
    if result and result.phase == "Succeeded":
        return SUCCEEDED, 0
    return deletion_of(record) if outcome_of(record) is Outcome.DELETED else None


def deletion_of(record: PodRecord) -> PodEnd | None:
    """The end of a deleted pod that was never bound."""
    return None if record.deletion_us is None else (DELETED, record.deletion_us)


def ends_by(known: CountedEnds, at_us: int) -> CountedEnds:
    """The ends, with no deletion later than `at_us`."""
    found: dict[PodEnd, int] = {}
    for kind, number, count in known:
        end = (kind, min(number, at_us) if kind == DELETED else number)
        found[end] = found.get(end, 0) + count
    return tuple((*end, count) for end, count in sorted(found.items()))


def with_ends(known: CountedEnds, change: Mapping[PodEnd, int]) -> CountedEnds:
    """The ends of forgotten pods, changed by these numbers; old deletions are left out."""
    found = {(kind, number): count for kind, number, count in known}
    for end, count in change.items():
        found[end] = found.get(end, 0) + count
    last_us = max((number for kind, number in found if kind == DELETED), default=0)
    return tuple(
        (kind, number, count)
        for (kind, number), count in sorted(found.items())
        if count > 0 and (kind != DELETED or number >= last_us - _KEPT_US)
    )
