"""When the record of a preemption of a job is delivered."""

from typing import Final

from gputally.model.disruptions import CLOSED_US, OWN_JOB, QUEUE_CLOSED_US, Cause
from gputally.model.units import US_PER_SECOND
from gputally.report.disruption_lines import DisruptionLine
from gputally.report.job_preemptions.job_preemption import FOLLOWED_US, JobPreemption

SETTLED_US: Final = 600 * US_PER_SECOND
"""How long after the release of the last pod to wait for what is still missing."""


def is_due(found: JobPreemption, *, queued_us: int, pods_complete_us: int, now_us: int) -> bool:
    """Whether to deliver the record now.

    First no further pod may be added. Then it is complete and its pods are replaced, or nothing more is awaited: ten
    minutes after all pods have released their GPUs, and an hour after the decision if one does not. Both count from
    `queued_us`, when it was recorded, if that was later. A job that its queue stopped may wait for hours.
    """
    if pods_complete_us < _closed_us(found, queued_us):
        return False
    if found.is_complete and all(map(_is_replaced, found.victims)):
        return True
    released_us = found.released_us
    if released_us is None:
        return now_us >= max(queued_us, found.last_decided_us) + FOLLOWED_US
    return now_us >= max(queued_us, released_us) + SETTLED_US


def _closed_us(found: JobPreemption, queued_us: int) -> int:
    """Once the watch of pods is complete up to then, no further pod is added, see `JobPreemptions`."""
    if found.is_by_queue:
        return max(queued_us, found.last_decided_us) + QUEUE_CLOSED_US
    return found.last_decided_us + CLOSED_US


def _is_replaced(each: DisruptionLine) -> bool:
    victim = each.disruption
    return victim.replaced_us is not None or victim.job_kind == OWN_JOB or victim.cause is Cause.QUEUE_PREEMPTION
