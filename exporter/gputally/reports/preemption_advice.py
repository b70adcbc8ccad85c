"""What would have prevented a preemption of a job, or made it cheaper: each follows from the rows of the ledger."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Final

from msgspec import Struct

from gputally.frameworks.kueue import QueueRule
from gputally.model.disruptions import VictimRecord
from gputally.model.units import GPU_HOUR, US_PER_SECOND, duration_text
from gputally.reports.job_preemptions import JobPreemption
from gputally.reports.rounding import decimal_of

_HIGHEST_PRIORITY: Final = 10**9
"""Only the classes of Kubernetes itself have a higher one."""
_KILLED: Final = 137
"""The exit code after SIGKILL."""


class Advice(Struct, frozen=True):
    """One sentence about a preemption, by the kind of advice."""

    name: str
    text: str


class _Check(Struct, frozen=True):
    """Returns the sentence, None if it does not apply; the second argument hides names and priorities of preemptors."""

    name: str
    text: Callable[[JobPreemption, bool], str | None]


def advice_for(found: JobPreemption, *, tiers_only: bool) -> Iterator[Advice]:
    """All that applies; nothing, if nothing of it would have helped."""
    for check in _CHECKS:
        if text := check.text(found, tiers_only):
            yield Advice(check.name, text)


def hours(gpu_time: int) -> str:
    """GPU-hours for people, with two decimals; what is not nothing is not shown as 0.00."""
    shown = decimal_of(Fraction(gpu_time, GPU_HOUR), 2)
    return f"{shown:f}" if shown or not gpu_time else "less than 0.01"


def _checkpoint(found: JobPreemption, _: bool) -> str | None:  # noqa: FBT001 - see _Check
    """The longest interval that would have halved the loss."""
    loss = found.loss
    halving = [] if loss is None else [each for each, lost in loss.at_intervals.items() if 2 * lost <= loss.gpu_time]
    if loss is None or not loss.gpu_time or not halving:
        return None
    interval_us = max(halving)
    lost = f"{'up to ' if loss.is_upper_bound else ''}{hours(loss.gpu_time)} GPU-hours"
    return (
        f"A checkpoint every {duration_text(interval_us // US_PER_SECOND)} would have lost "
        f"{hours(loss.at_intervals[interval_us])} instead of {lost}."
    )


def _grace_period(found: JobPreemption, _: bool) -> str | None:  # noqa: FBT001 - see _Check
    """Pods that lost work, and still ran when their grace period ended."""
    if found.loss is None or not found.loss.gpu_time:
        return None
    killed = [each.victim for each in found.victims if _was_killed(each.victim)]
    if not killed:
        return None
    seconds = max(each.grace_us or 0 for each in killed) // US_PER_SECOND
    return (
        f"{_some(len(killed), found)} killed when the grace period of {seconds} s ended: saving work on SIGTERM "
        "needs a longer terminationGracePeriodSeconds."
    )


def _was_killed(each: VictimRecord) -> bool:
    if each.exit_code != _KILLED or each.stopped_us is None or each.requested_us is None or each.grace_us is None:
        return False
    return each.stopped_us - each.requested_us >= each.grace_us - US_PER_SECOND  # times have whole seconds


def _retries(found: JobPreemption, _: bool) -> str | None:  # noqa: FBT001 - see _Check
    used = sum(each.victim.uses_retry for each in found.victims)
    if not used:
        return None
    return (
        f"{_some(used, found)} counted as failed by the Job: a rule of a podFailurePolicy that ignores the condition "
        "DisruptionTarget would not have used up retries."
    )


def _priority(found: JobPreemption, tiers_only: bool) -> str | None:  # noqa: FBT001 - see _Check
    """The lowest priority that none of the preemptors would have preempted."""
    preemptions = [each.victim.by for each in found.victims if each.victim.by]
    needed = max((each.preemptor_priority or 0 for each in preemptions), default=0)
    if not found.is_permitted or needed > _HIGHEST_PRIORITY:
        return None
    if tiers_only:
        tiers = ", ".join(sorted({each.preemptor_tier for each in preemptions}))
        return f"Pods of a PriorityClass that is not below that of tier {tiers} would not have been preempted."
    own = min(each.victim_priority or 0 for each in preemptions)
    return f"Pods of a PriorityClass of {needed} or more would not have been preempted; theirs is {own}."


def _queue_priority(found: JobPreemption, tiers_only: bool) -> str | None:  # noqa: FBT001 - see _Check
    """A priority above that of the workload for which a ClusterQueue preempted it."""
    known = [each.victim.by for each in found.victims if each.victim.by]
    rules = {each.queue_rule for each in known}
    theirs = max((each.preemptor_priority for each in known if each.preemptor_priority is not None), default=None)
    own = min((each.victim_priority for each in known if each.victim_priority is not None), default=None)
    if rules != {QueueRule.IN_CLUSTER_QUEUE} or theirs is None or own is None or own > theirs:
        return None
    above = f"that of tier {known[0].preemptor_tier}" if tiers_only else str(theirs)
    return f"A priority above {above} in its ClusterQueue would have prevented it; that of the workload is {own}."


def _queue_quota(found: JobPreemption, _: bool) -> str | None:  # noqa: FBT001 - see _Check
    """Kueue reclaims from ClusterQueues that borrow alone. Source: its pkg/scheduler/preemption, cqIsBorrowing."""
    known = [each.victim.by for each in found.victims if each.victim.by]
    if not known or any(not each.queue_rule or each.queue_rule == QueueRule.IN_CLUSTER_QUEUE for each in known):
        return None
    return (
        "Its ClusterQueue had borrowed quota of the cohort: as long as a ClusterQueue stays within its nominal quota, "
        "others do not preempt its workloads."
    )


def _some(count: int, found: JobPreemption) -> str:
    total = len(found.victims)
    return f"{count} of {total} pods {'was' if count == 1 else 'were'}" if total > 1 else "The pod was"


_CHECKS: Final = (
    _Check("checkpoint", _checkpoint),
    _Check("grace-period", _grace_period),
    _Check("retries", _retries),
    _Check("priority", _priority),
    _Check("priority", _queue_priority),
    _Check("quota", _queue_quota),
)
