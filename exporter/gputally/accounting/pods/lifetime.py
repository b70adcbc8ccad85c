"""When a pod's allocation began, ran, was asked to stop and ended, merged over observations in any order.

Every rule here is commutative: a repeated, late or reordered observation leads to the same record.
An API timestamp later than the observation itself is held to the observation (the server's clock is
ahead of ours), and no later stage ever precedes an earlier one.
"""

from msgspec.structs import replace

from gputally.accounting.nodes.node_clock import OFF_US, clock_of, true_times
from gputally.accounting.pods.runs import finished_at, is_accepted, starts, starts_again
from gputally.accounting.shared import shared
from gputally.errors import MalformedObject
from gputally.model.allocation import End, Ending
from gputally.model.kube import Condition, Pod
from gputally.model.owner import controller_of
from gputally.model.pod import Clock, PodRecord
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND, to_us
from gputally.shares.request import effective_units

_TERMINAL = ("Succeeded", "Failed")
_REJECTIONS = ("OutOf", "UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "TopologyAffinityError")
_PREEMPTION = ("PreemptionByScheduler", "PreemptionByKubeScheduler")
"""The second is what 1.25 and 1.26 wrote."""
_POD_GC = "DeletionByPodGC"
_PROMPT_US = 2 * US_PER_SECOND
"""What is told within this time is told at once: API timestamps are cut to the second, and news takes its time."""
_SUREST_FIRST = tuple(End)


def born(pod: Pod, units: tuple[tuple[str, int], ...], *, at_us: int) -> PodRecord:
    """What never changes of a pod that asks for `units`."""
    meta = pod.metadata
    return PodRecord(
        uid=meta.uid,
        namespace=shared(meta.namespace),
        name=meta.name,
        units=shared(units),
        class_name=shared(pod.spec.priority_class_name),
        priority=pod.spec.priority,
        owner=controller_of(meta.owner_references),
        created_us=created_us(pod, at_us),
        accepted=False,
    )


def given(record: PodRecord, pod: Pod, rules: Rules) -> PodRecord:
    """The unbound `record` with what its scheduler assigned when it bound the pod, which annotations say."""
    if not pod.spec.node_name or not pod.metadata.annotations:
        return record
    try:
        units = effective_units(pod, rules)
    except MalformedObject:
        return record
    return replace(record, units=shared(units)) if units and units != record.units else record


def seen(record: PodRecord, pod: Pod, *, at_us: int, since_us: int) -> PodRecord:
    """`record` with what the observed form of `pod` adds to it."""
    bound_us = _scheduled_us(pod, at_us)
    claimed_us = record.claimed_us if bound_us else _earliest(record.claimed_us, _claimed_us(pod, at_us))
    scheduled_us = _earliest(record.scheduled_us, bound_us)
    accepted = record.accepted or (is_accepted(pod) and not _rejected(pod))
    if accepted:
        scheduled_us = _earliest(scheduled_us, claimed_us)
    clock = clock_of(record, pod, scheduled_us=scheduled_us, at_us=at_us)
    record = replace(
        record,
        node=pod.spec.node_name or record.node,
        claimed_us=claimed_us,
        accepted=accepted,
        scheduled_us=scheduled_us,
        clock=clock,
        started_us=_earliest(record.started_us, _started_us(pod, clock, at_us)),
        deletion_us=_earliest(record.deletion_us, _deletion_us(record, pod, at_us)),
    )
    return _ended(record, pod, at_us=at_us, since_us=since_us) if pod.status.phase in _TERMINAL else record


def gone(record: PodRecord, pod: Pod, *, at_us: int, since_us: int) -> PodRecord:
    """`record` after the DELETED event that carried `pod` as its last form."""
    record = seen(record, pod, at_us=at_us, since_us=since_us)
    since_us, until_us = _went(pod, at_us=at_us, since_us=since_us)
    return _end(record, End.DELETED, at_us=until_us, since_us=since_us)


def _went(pod: Pod, *, at_us: int, since_us: int) -> tuple[int, int]:
    """The earliest and the latest moment a deleted pod can have gone: its last deletion request allowed no grace.

    That shows, too, when a stream which seemed live told of it late, or was complete only up to an earlier moment.

    Source: k8s.io/apiserver pkg/registry/rest/delete.go, BeforeDelete.
    """
    meta = pod.metadata
    if meta.deletion_timestamp is None or meta.deletion_grace_period_seconds:
        return since_us, at_us
    last_us = min(to_us(meta.deletion_timestamp), at_us)  # cut to the second
    if since_us == at_us and at_us - last_us <= _PROMPT_US:
        return (prompt_us := min(at_us, last_us + US_PER_SECOND)), prompt_us
    return last_us, at_us


def vanished(record: PodRecord, *, at_us: int, since_us: int) -> PodRecord:
    """`record` of a pod that a listing no longer has: it ended somewhere in [since_us, at_us]."""
    return _end(record, End.VANISHED, at_us=at_us, since_us=since_us)


def _ended(record: PodRecord, pod: Pod, *, at_us: int, since_us: int) -> PodRecord:
    """The end of a terminal pod; a finishing time replaces an end that was only observed, and the last one counts."""
    if _rejected(pod):
        return _end(record, End.REJECTED, at_us=at_us, since_us=since_us)
    finished = None if starts_again(pod) and _is_collected(pod) else finished_at(pod)
    finished_us = to_us(finished) if finished else None
    if finished_us is None or true_times(finished_us, record.clock)[1] < (record.scheduled_us or 0) - OFF_US:
        collected_us = _collected_us(pod, at_us)  # nobody knows, or a clock that stepped back
        return _end(record, End.TERMINAL, at_us=collected_us, since_us=min(since_us, collected_us))
    held_us = _held_us(record, pod, at_us)
    ending = Ending(by=End.FINISHED, from_us=finished_us, to_us=at_us, held_us=held_us)
    return replace(record, ending=_later(record.ending, ending))


def _later(known: Ending | None, new: Ending) -> Ending:
    """Of two finishing times the last; what was held longer by one form alone was told too late of the other."""
    if known is None or known.by is not End.FINISHED:
        return new
    last = max(known, new, key=lambda ending: (ending.from_us, -ending.to_us))
    return replace(last, held_us=min(known.held_us, new.held_us))


def _held_us(record: PodRecord, pod: Pod, at_us: int) -> int:
    """Until when a terminal pod had its devices at least: one whose containers start again, until it was to be deleted.

    The kubelet then writes the end of their last runs, which may be long ago. It gives a reason for a pod that it ended
    itself. Such a pod was terminal before its deletion was asked for.

    Source: k8s.io/kubernetes pkg/kubelet/kubelet_pods.go, convertToAPIContainerStatuses.
    """
    return 0 if pod.status.reason or not starts_again(pod) else _deletion_us(record, pod, at_us) or 0


def _collected_us(pod: Pod, at_us: int) -> int:
    """By when a terminal pod was so: PodGC notes when it makes one terminal.

    Source: k8s.io/kubernetes pkg/controller/podgc/gc_controller.go, markFailedAndDeletePodWithCondition.
    """
    condition = _condition(pod, "DisruptionTarget")
    if condition is None or not _is_collected(pod) or condition.last_transition_time is None:
        return at_us
    return min(to_us(condition.last_transition_time), at_us)


def _is_collected(pod: Pod) -> bool:
    """Whether PodGC made the pod terminal."""
    condition = _condition(pod, "DisruptionTarget")
    return condition is not None and condition.reason == _POD_GC


def _end(record: PodRecord, by: End, *, at_us: int, since_us: int) -> PodRecord:
    """An end without a timestamp of its own. The surest counts, and of equally sure ones the first observed."""
    known = record.ending
    if known and (_SUREST_FIRST.index(known.by), known.to_us) <= (_SUREST_FIRST.index(by), at_us):
        return record
    return replace(record, ending=Ending(by=by, from_us=min(since_us, at_us), to_us=at_us))


def never_held(record: PodRecord, by: End | None) -> bool:
    """Whether a pod that ended so was refused from the start: a restarted kubelet may refuse one that has long run.

    Source: k8s.io/kubernetes pkg/kubelet/kubelet.go, HandlePodAdditions.
    """
    return by is End.REJECTED and record.started_us is None


def _scheduled_us(pod: Pod, at_us: int) -> int | None:
    """When the pod was bound, as the scheduler's binding or the kubelet tells."""
    condition = _condition(pod, "PodScheduled") if pod.spec.node_name else None
    if condition is None or condition.status != "True" or condition.last_transition_time is None:
        return None
    bound, created = condition.last_transition_time, pod.metadata.creation_timestamp
    return min(to_us(created if created and created > bound else bound), at_us)


def _claimed_us(pod: Pod, at_us: int) -> int | None:
    """The creation of a pod that its creator bound by hand: it names a node that no scheduler chose.

    A scheduler that does not hear that its binding succeeded calls the pod unscheduled afterwards: such a pod was bound
    by the time its kubelet took it up.

    Source: k8s.io/kubernetes pkg/scheduler/schedule_one.go, handleBindingCycleError.
    """
    if not pod.spec.node_name:
        return None
    scheduled, taken_up = _condition(pod, "PodScheduled"), pod.status.start_time
    if scheduled is None:
        return created_us(pod, at_us)
    if scheduled.status == "True" or taken_up is None:
        return None
    return max(created_us(pod, at_us), min(to_us(taken_up), at_us))


def created_us(pod: Pod, at_us: int) -> int:
    """The pod's creation, at the latest now."""
    created = pod.metadata.creation_timestamp
    return min(to_us(created), at_us) if created else at_us


def _started_us(pod: Pod, clock: Clock | None, at_us: int) -> int | None:
    times = starts(pod)
    if not times:
        return None
    first_us = to_us(min(times))
    return min(true_times(first_us, clock)[0] if clock else first_us, at_us)


def _deletion_us(record: PodRecord, pod: Pod, at_us: int) -> int | None:
    """When deletion was asked for: `deletionTimestamp` is that instant plus the grace period.

    A grace period so long that this would precede the pod overflowed in the server: it was asked for by now.

    Source: k8s.io/apiserver pkg/registry/rest/delete.go, BeforeDelete.
    """
    if pod.metadata.deletion_timestamp is None:
        return None
    grace = pod.metadata.deletion_grace_period_seconds or 0
    requested_us = to_us(pod.metadata.deletion_timestamp) - grace * US_PER_SECOND
    return min(requested_us, at_us) if requested_us >= record.created_us else at_us


def preempted_us(record: PodRecord, pod: Pod, at_us: int) -> int | None:
    """When a pod was marked as preempted, of which `pod` is the newest form.

    That form decides, as the mark may be taken back, but not once deletion was asked for: PodGC, which writes over the
    mark, makes no preemption undone.
    """
    condition = _condition(pod, "DisruptionTarget")
    if condition is None or condition.status != "True" or condition.reason not in _PREEMPTION:
        return record.preempted_us if record.deletion_us is not None else None
    time = condition.last_transition_time
    return min(to_us(time), at_us) if time else at_us


def _rejected(pod: Pod) -> bool:
    """The kubelet refused the pod at admission, so it never held a device."""
    status = pod.status
    if status.phase != "Failed":
        return False
    refused = (status.reason or "").startswith(_REJECTIONS) or (status.message or "").startswith("Pod was rejected")
    return refused and not starts(pod)


def _condition(pod: Pod, kind: str) -> Condition | None:
    for condition in pod.status.conditions or ():
        if condition.type == kind:
            return condition
    return None


def _earliest(known: int | None, new: int | None) -> int | None:
    if new is None or known is None:
        return known if new is None else new
    return min(known, new)
