"""Whether a Job ended early: it counts a preempted pod as a success, or failed only because pods were preempted."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from gputally.accounting.jobs.failure_policy import DELETED, FAIL_JOB, IGNORE, PREEMPTED, SUCCEEDED, PodEnd
from gputally.accounting.jobs.record import JobRecord
from gputally.model.allocation import Outcome

EARLY: Final = (Outcome.COMPLETED_EARLY, Outcome.FAILED_EARLY)
_BY_CONDITION: Final = {Outcome.COMPLETED_EARLY: Outcome.SUCCEEDED, Outcome.FAILED_EARLY: Outcome.FAILED}

_Ends = Mapping[PodEnd, int]


def judged(record: JobRecord, present: _Ends) -> JobRecord:
    """The record with the outcome by its condition and the ends of its pods, of which it has the forgotten ones."""
    outcome = _BY_CONDITION.get(record.outcome, record.outcome)
    ends = {(kind, number): count for kind, number, count in record.ends}
    for end, count in present.items():
        ends[end] = ends.get(end, 0) + count
    if outcome is Outcome.SUCCEEDED and counted_as_successes(record, ends):
        outcome = Outcome.COMPLETED_EARLY
    elif outcome is Outcome.FAILED and is_failed_early(record, ends):
        outcome = Outcome.FAILED_EARLY
    return record if outcome is record.outcome else replace(record, outcome=outcome)


def counted_as_successes(record: JobRecord, ends: _Ends) -> int:
    """How many preempted pods the Job counts as successes: those that exited with 0.

    A Job that does not wait for their end counts them as failures, unless they had ended when it looked, which is a
    second after the request. Then it has more successes than pods that succeeded by themselves.
    """
    exited = ends.get((PREEMPTED, 0), 0)
    if record.policy.waits:
        return exited
    return min(exited, max(0, record.successes - ends.get((SUCCEEDED, 0), 0)))


def is_failed_early(record: JobRecord, ends: _Ends) -> bool:
    """Whether the Job would not have failed without its preempted pods.

    The pods that it stopped when it gave up are among its failures, but did not lead to them.
    """
    failed = dict(_failed_victims(ends))
    policy = record.policy
    if record.reason == "PodFailurePolicy":
        return any(policy.action_for(code) == FAIL_JOB for code in failed)
    if record.reason != "BackoffLimitExceeded":
        return False
    victims = sum(count for code, count in failed.items() if policy.action_for(code) != IGNORE)
    victims += ends.get((PREEMPTED, 0), 0) - counted_as_successes(record, ends)
    failures = record.failures - _stopped(record, ends)
    return failures > policy.backoff_limit >= failures - victims


def _failed_victims(ends: _Ends) -> Iterator[tuple[int, int]]:
    """Preempted pods that did not exit with 0, by exit code."""
    return ((code, count) for (kind, code), count in ends.items() if kind == PREEMPTED and code)


def _stopped(record: JobRecord, ends: _Ends) -> int:
    since_us = record.failing_us
    if since_us is None:
        return 0
    return sum(count for (kind, at_us), count in ends.items() if kind == DELETED and at_us >= since_us)
