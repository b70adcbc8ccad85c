"""When a pod's allocation began, ran, was asked to stop and ended, merged over observations in any order.

Every rule here is commutative: a repeated, late or reordered observation leads to the same record.
An API timestamp later than the observation itself is held to the observation (the server's clock is
ahead of ours), and no later stage ever precedes an earlier one.
"""

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from gputally.model.allocation import Blind, End
from gputally.model.kube import Condition, ContainerStatus, Pod
from gputally.model.pod import PodRecord
from gputally.model.units import US_PER_SECOND, to_us

_TERMINAL = ("Succeeded", "Failed")
_REJECTIONS = ("OutOf", "UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "TopologyAffinityError")
_PREEMPTION = ("PreemptionByScheduler", "PreemptionByKubeScheduler")
"""The second is what 1.25 and 1.26 wrote."""


def seen(record: PodRecord, pod: Pod, *, at_us: int, since_us: int) -> PodRecord:
    """`record` with what the observed form of `pod` adds to it."""
    scheduled_us = _first(record.scheduled_us, _scheduled_us(pod, at_us))
    record = replace(
        record,
        node=pod.spec.node_name or record.node,
        scheduled_us=scheduled_us,
        started_us=_earliest(record.started_us, _started_us(pod, at_us)),
        deletion_us=_earliest(record.deletion_us, _deletion_us(pod, at_us)),
        preempted_us=_first(record.preempted_us, _preempted_us(pod, at_us)),
    )
    return _ended(record, pod, at_us=at_us, since_us=since_us) if pod.status.phase in _TERMINAL else record


def gone(record: PodRecord, pod: Pod, *, at_us: int, since_us: int) -> PodRecord:
    """`record` after the DELETED event that carried `pod` as its last form."""
    record = seen(record, pod, at_us=at_us, since_us=since_us)
    if record.end_by is not None:
        return record
    return _end(record, End.DELETED, at_us=at_us, since_us=since_us)


def vanished(record: PodRecord, *, at_us: int, since_us: int) -> PodRecord:
    """`record` of a pod that a listing no longer has: it ended somewhere in [since_us, at_us]."""
    if record.end_by is not None:
        return record
    return _end(record, End.VANISHED, at_us=at_us, since_us=since_us)


def _ended(record: PodRecord, pod: Pod, *, at_us: int, since_us: int) -> PodRecord:
    """The end of a terminal pod; a finishing time replaces an end that was only observed."""
    if _rejected(pod):
        return replace(record, end_by=End.REJECTED, end_us=record.scheduled_us, blind=None)
    finished_us = max((to_us(time) for time in _finishes(pod)), default=None)
    if finished_us is not None:
        return replace(record, end_by=End.FINISHED, end_us=min(finished_us, at_us), blind=None)
    if record.end_by is not None:
        return record
    return _end(record, End.TERMINAL, at_us=at_us, since_us=since_us)


def _end(record: PodRecord, by: End, *, at_us: int, since_us: int) -> PodRecord:
    """An end without a timestamp of its own: exact on a live stream, else a blind interval charged to its start."""
    known_us = max(since_us, record.scheduled_us or 0, record.started_us or 0)
    if known_us >= at_us:
        return replace(record, end_by=by, end_us=at_us)
    return replace(record, end_by=by, end_us=known_us, blind=Blind(from_us=known_us, to_us=at_us))


def _scheduled_us(pod: Pod, at_us: int) -> int | None:
    """When the pod was bound. A pod created with a nodeName was bound by hand, at its creation."""
    if not pod.spec.node_name:
        return None
    condition = _condition(pod, "PodScheduled")
    if condition and condition.status == "True" and condition.last_transition_time:
        return min(to_us(condition.last_transition_time), at_us)
    return created_us(pod, at_us)


def created_us(pod: Pod, at_us: int) -> int:
    """The pod's creation, at the latest now."""
    created = pod.metadata.creation_timestamp
    return min(to_us(created), at_us) if created else at_us


def _started_us(pod: Pod, at_us: int) -> int | None:
    starts = (to_us(time) for time in _starts(pod))
    return min((min(start, at_us) for start in starts), default=None)


def _deletion_us(pod: Pod, at_us: int) -> int | None:
    """When deletion was asked for: `deletionTimestamp` is that instant plus the grace period.

    Source: k8s.io/apiserver pkg/registry/rest/delete.go, BeforeDelete.
    """
    if pod.metadata.deletion_timestamp is None:
        return None
    grace = pod.metadata.deletion_grace_period_seconds or 0
    return min(to_us(pod.metadata.deletion_timestamp) - grace * US_PER_SECOND, at_us)


def _preempted_us(pod: Pod, at_us: int) -> int | None:
    condition = _condition(pod, "DisruptionTarget")
    if condition is None or condition.status != "True" or condition.reason not in _PREEMPTION:
        return None
    time = condition.last_transition_time
    return min(to_us(time), at_us) if time else at_us


def _rejected(pod: Pod) -> bool:
    """The kubelet refused the pod at admission, so it never held a device."""
    status = pod.status
    refused = (status.reason or "").startswith(_REJECTIONS) or (status.message or "").startswith("Pod was rejected")
    return status.phase == "Failed" and refused and not any(_starts(pod))


def _condition(pod: Pod, kind: str) -> Condition | None:
    return next((c for c in pod.status.conditions or () if c.type == kind), None)


def _starts(pod: Pod) -> Iterator[datetime]:
    """Starts of main containers, of this run and the one before."""
    for status in pod.status.container_statuses or ():
        for state in (status.state, status.last_state):
            if state and state.running and state.running.started_at:
                yield state.running.started_at
            if state and state.terminated and state.terminated.started_at:
                yield state.terminated.started_at


def _finishes(pod: Pod) -> Iterator[datetime]:
    """Ends of all containers, init containers and sidecars too: the last one releases the devices."""
    statuses: tuple[ContainerStatus, ...] = (pod.status.container_statuses or ()) + (
        pod.status.init_container_statuses or ()
    )
    for status in statuses:
        if status.state and status.state.terminated and status.state.terminated.finished_at:
            yield status.state.terminated.finished_at


def _first(known: int | None, new: int | None) -> int | None:
    return new if known is None else known


def _earliest(known: int | None, new: int | None) -> int | None:
    if known is None or new is None:
        return _first(known, new)
    return min(known, new)
