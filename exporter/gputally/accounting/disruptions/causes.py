"""Decides why a pod lost its GPUs: what its object says, weighed with what its node showed before."""

from collections.abc import Callable
from typing import Final

from gputally.accounting.disruptions.node_signals import NodeSignal
from gputally.accounting.facts.lifetime import never_held
from gputally.accounting.facts.node_clock import OFF_US
from gputally.accounting.facts.outcome import outcome_of
from gputally.model.allocation import Outcome
from gputally.model.disruptions import PREEMPTIONS, Cause, Disrupted
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND

_OF_THE_POD = (
    *(*PREEMPTIONS, Cause.QUEUE_EVICTION, Cause.CONSOLIDATION),
    *(Cause.NODE_PRESSURE, Cause.DEVICE_TAINT),
)
"""Causes that stay, whatever happens to the node."""


_SUSPENDED_US: Final = 60 * US_PER_SECOND
"""How long after it has deleted the pods of a Job its controller may say that the Job is suspended."""
SuspendedUs = Callable[[PodRecord], int | None]
"""When the Job that controls a pod was suspended last (µs)."""
Evicted = Callable[[PodRecord, int], Disrupted | None]
"""The eviction of the workload of a pod that was deleted at that time (µs), as its queue reports it."""


def reported_of(record: PodRecord, suspended_us: SuspendedUs, evicted: Evicted, *, is_gone: bool) -> Disrupted | None:
    """The disruption of a pod by its own object, its Job and its queue.

    None if it goes on, ended by itself, or never had its GPUs.

    A mark counts once the pod has ended or its deletion was requested: until then it may be withdrawn; so does the
    eviction of its workload. A deletion without these counts once the end is known, since the pod may have ended by
    itself just before.
    """
    if record.deletion_us is None and record.end_us is None and not is_gone:
        return None  # most events
    if record.scheduled_us is None or not record.terms or never_held(record, record.end_by):
        return None
    is_deleted = is_gone or record.deletion_us is not None
    if record.preempted_us is not None and is_deleted:
        return Disrupted(Cause.PREEMPTION, record.preempted_us)
    if record.disruption and (is_deleted or record.end_us is not None):
        return None if _is_late(record.disruption, record.end_us) else record.disruption
    if record.end_us is None:
        return None if record.deletion_us is None else evicted(record, record.deletion_us)
    return _unmarked(record, record.end_us, suspended_us, evicted)


def _is_suspended(suspended_us: int | None, deleted_us: int) -> bool:
    """Whether a pod was deleted since its Job was suspended; that of a pod in a queue is suspended by its queue."""
    return suspended_us is not None and deleted_us - OFF_US <= suspended_us <= deleted_us + _SUSPENDED_US


def _is_late(found: Disrupted, end_us: int | None) -> bool:
    """Whether the pod had ended by itself when it was marked; that of a lost node is written long after the end."""
    return end_us is not None and found.at_us > end_us + OFF_US and found.cause is not Cause.NODE_LOST


def _unmarked(record: PodRecord, end_us: int, suspended_us: SuspendedUs, evicted: Evicted) -> Disrupted | None:
    match outcome_of(record):
        case Outcome.DELETED:
            deleted_us = end_us if record.deletion_us is None else min(record.deletion_us, end_us)
            if found := evicted(record, deleted_us):
                return found
            is_evicted = bool(record.terms[-1].queue) and _is_suspended(suspended_us(record), deleted_us)
            return Disrupted(Cause.QUEUE_EVICTION if is_evicted else Cause.DELETION, deleted_us)
        case Outcome.LOST:
            return Disrupted(Cause.NODE_LOST, end_us)
    return None


def verdict_of(
    reported: Cause, *, signal: NodeSignal | None, is_spot: bool, released_us: int | None
) -> tuple[Cause, bool]:
    """The cause, and whether it is certain.

    A spot label says that a reclaim is possible; only a signal on the node, before the end of the pod, proves one. The
    shutdown of a spot machine is likely to be one, as GKE gives no other signal. A spot node that was lost may have
    been reclaimed or have failed, so its cause stays.
    """
    if reported in _OF_THE_POD:
        return reported, True
    if signal and _is_before(signal.reclaim_us, released_us):
        return Cause.SPOT_RECLAIM, True
    if signal and _is_before(signal.scale_down_us, released_us):
        return Cause.SCALE_DOWN, True
    if is_spot and reported is Cause.NODE_SHUTDOWN:
        return Cause.SPOT_RECLAIM, False
    return reported, not (is_spot and reported is Cause.NODE_LOST)


def _is_before(signal_us: int | None, released_us: int | None) -> bool:
    return signal_us is not None and (released_us is None or signal_us <= released_us)
