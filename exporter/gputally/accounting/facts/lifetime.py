"""When a pod's allocation began, ran, was requested to stop and ended, merged over observations in any order.

Every rule is commutative: repeated, late or reordered observations lead to the same record. API timestamps
are capped at the time of the observation (the server's clock may be ahead), and no stage precedes an earlier one.
"""

from msgspec.structs import replace

from gputally.accounting.base.compact import shared, shared_owner
from gputally.accounting.facts.gpu_model import gpu_model_selected
from gputally.accounting.facts.node_clock import OFF_US, clock_of, true_times
from gputally.accounting.facts.outcome import disruption_of, is_preemption, target_of, with_result
from gputally.accounting.facts.runs import finished_at, is_accepted, is_cleared, starts, starts_again
from gputally.errors import MalformedObject
from gputally.frameworks.groups import stated_group
from gputally.model.allocation import End, Ending
from gputally.model.disruptions import Disrupted
from gputally.model.kube.meta import Condition, controller_of
from gputally.model.kube.pods import ENDED_PHASES, NEVER, NO_ANNOTATIONS, Pod
from gputally.model.pod_record import Clock, PodRecord
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND, dated_us, to_us
from gputally.shares.request import effective_units

REJECTION_REASONS = ("OutOf", "UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "TopologyAffinityError")
"""Beginnings of the reasons with which a kubelet rejects a pod."""
LONGEST_GRACE_S = 10**9
"""The API allows 63 bits, which overflow as µs."""
_POD_GC = "DeletionByPodGC"
_IMMEDIATE_US = 2 * US_PER_SECOND
"""Events that arrive within this time count as immediate: API timestamps have whole seconds, and events take time."""
_MOST_RELIABLE_FIRST = tuple(End)


def new_record(pod: Pod, units: tuple[tuple[str, int], ...], *, at_us: int) -> PodRecord:
    """A new record of a pod that requests `units`, with its immutable fields."""
    meta, labels = pod.metadata, pod.metadata.labels or {}
    said = None if meta.annotations == NO_ANNOTATIONS else meta.annotations  # most pods say nothing
    stated = stated_group(labels, said)
    return PodRecord(
        uid=meta.uid,
        namespace=shared(meta.namespace),
        name=meta.name,
        units=shared(units),
        class_name=shared(pod.spec.priority_class_name),
        priority=shared(pod.spec.priority),
        may_preempt=pod.spec.preemption_policy != NEVER,
        owner=shared_owner(controller_of(meta.owner_references)),
        created_us=created_us(pod, at_us),
        scheduling_group=group.pod_group_name if (group := pod.spec.scheduling_group) else "",
        accepted=False,
        gang=stated.gang,
        gang_size=stated.gang_size,
        pod_group=shared(stated.pod_group),
        restarts=stated.restarts,
    )


def with_assigned_units(record: PodRecord, pod: Pod, rules: Rules) -> PodRecord:
    """The unbound `record` with the units that the scheduler assigned at binding, from the pod's annotations."""
    if not pod.spec.node_name or not pod.metadata.annotations:
        return record
    try:
        units = effective_units(pod, rules)
    except MalformedObject:
        return record
    return replace(record, units=shared(units)) if units and units != record.units else record


def seen(record: PodRecord, pod: Pod, *, at_us: int, since_us: int) -> PodRecord:
    """`record` updated from the observed state of `pod`."""
    bound_us = _scheduled_us(pod, at_us)
    claimed_us = record.claimed_us if bound_us else _earliest(record.claimed_us, _claimed_us(pod, at_us))
    scheduled_us = _earliest(record.scheduled_us, bound_us)
    accepted = record.accepted or is_accepted(pod, is_rejected=_rejected(pod))
    if accepted and claimed_us is not None:
        scheduled_us = _earliest(scheduled_us, claimed_us)
    clock = clock_of(record, pod, scheduled_us=scheduled_us, at_us=at_us)
    deletion_us, grace_us = record.deletion_us, record.grace_us
    if pod.metadata.deletion_timestamp:
        deletion_us, grace_us = _requested(record, pod, at_us)
    record = replace(
        record,
        node=record.node if pod.spec.node_name in ("", record.node) else shared(pod.spec.node_name),
        # A bound pod keeps its node selector and its affinity.
        selected_model=record.selected_model if record.node else shared(gpu_model_selected(pod.spec)),
        claimed_us=claimed_us,
        accepted=accepted,
        scheduled_us=scheduled_us,
        clock=clock,
        started_us=_started_us(record, pod, clock, at_us),
        deletion_us=deletion_us,
        grace_us=grace_us,
    )
    return _ended(record, pod, at_us=at_us, since_us=since_us) if pod.status.phase in ENDED_PHASES else record


def gone(record: PodRecord, pod: Pod, *, at_us: int, since_us: int) -> PodRecord:
    """`record` after a DELETED event with the last state of `pod`."""
    record = seen(record, pod, at_us=at_us, since_us=since_us)
    since_us, until_us = _deleted_between(pod, at_us=at_us, since_us=since_us)
    return _end(record, End.DELETED, at_us=until_us, since_us=since_us)


def _deleted_between(pod: Pod, *, at_us: int, since_us: int) -> tuple[int, int]:
    """The earliest and latest moment at which the pod can have been deleted: its last request had no grace period.

    So a late event is noticed even on a stream that seemed live.

    Source: k8s.io/apiserver pkg/registry/rest/delete.go, BeforeDelete.
    """
    meta = pod.metadata
    if meta.deletion_timestamp is None or meta.deletion_grace_period_seconds:
        return since_us, at_us
    requested_us = min(to_us(meta.deletion_timestamp), at_us)  # whole seconds
    if since_us == at_us and at_us - requested_us <= _IMMEDIATE_US:
        return (deleted_us := min(at_us, requested_us + US_PER_SECOND)), deleted_us
    return requested_us, at_us


def vanished(record: PodRecord, *, at_us: int, since_us: int) -> PodRecord:
    """`record` of a pod that is missing from a relist: it ended within [since_us, at_us]."""
    return _end(record, End.VANISHED, at_us=at_us, since_us=since_us)


def _ended(record: PodRecord, pod: Pod, *, at_us: int, since_us: int) -> PodRecord:
    """The end of a terminal pod. A finish time replaces an observed end; the last finish time counts."""
    if (result := with_result(record.result, pod)) is not record.result:
        record = replace(record, result=result)
    if _rejected(pod):
        return _end(record, End.REJECTED, at_us=at_us, since_us=since_us)
    would_restart = starts_again(pod)
    finished = None if would_restart and _is_collected(pod) else finished_at(pod)
    finished_us = to_us(finished) if finished else None
    if finished_us is None or true_times(finished_us, record.clock)[1] < (record.scheduled_us or 0) - OFF_US:
        collected_us = _collected_us(pod, at_us)  # no finish time, or the clock stepped back
        return _end(record, End.TERMINAL, at_us=collected_us, since_us=min(since_us, collected_us))
    held_us = _held_us(record, pod, at_us) if would_restart else 0
    ending = Ending(by=End.FINISHED, from_us=finished_us, to_us=at_us, held_us=held_us)
    return replace(record, ending=_later(record.ending, ending))


def _later(known: Ending | None, new: Ending) -> Ending:
    """The later of two finish times, with the smaller `held_us`: the larger one comes from a late event."""
    if known is None or known.by is not End.FINISHED:
        return new
    last = new if (new.from_us, -new.to_us) > (known.from_us, -known.to_us) else known
    return replace(last, held_us=min(known.held_us, new.held_us))


def _held_us(record: PodRecord, pod: Pod, at_us: int) -> int:
    """The lower bound of a terminal pod's release, if its containers restart: its deletion request.

    For such a pod the kubelet writes the end of the last runs, which may be long ago. If the kubelet ended the pod
    itself, it sets a reason; that pod was terminal before its deletion was requested.

    Source: k8s.io/kubernetes pkg/kubelet/kubelet_pods.go, convertToAPIContainerStatuses.
    """
    return 0 if pod.status.reason else _deletion_us(record, pod, at_us) or 0


def _collected_us(pod: Pod, at_us: int) -> int:
    """When the pod had become terminal at the latest: PodGC records the time when it makes a pod terminal.

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
    """An end without a timestamp. The most reliable kind wins, then the first observed."""
    known = record.ending
    if known and (_MOST_RELIABLE_FIRST.index(known.by), known.to_us) <= (_MOST_RELIABLE_FIRST.index(by), at_us):
        return record
    return replace(record, ending=Ending(by=by, from_us=min(since_us, at_us), to_us=at_us))


def never_held(record: PodRecord, by: End | None) -> bool:
    """Whether the pod was rejected before its kubelet had accepted it.

    A restarted kubelet may also reject a pod that it had accepted long ago, and whose containers run, pull images or
    initialize: that pod held its devices until the rejection.

    Source: k8s.io/kubernetes pkg/kubelet/kubelet.go, HandlePodAdditions; pkg/kubelet/cm/devicemanager/manager.go,
    devicesToAllocate.
    """
    return by is End.REJECTED and not record.accepted and record.started_us is None


def _scheduled_us(pod: Pod, at_us: int) -> int | None:
    """When the pod was bound, according to the scheduler or the kubelet."""
    condition = _condition(pod, "PodScheduled") if pod.spec.node_name else None
    if condition is None or condition.status != "True" or condition.last_transition_time is None:
        return None
    bound, created = condition.last_transition_time, pod.metadata.creation_timestamp
    return min(to_us(created if created and created > bound else bound), at_us)


def _claimed_us(pod: Pod, at_us: int) -> int | None:
    """The binding time of a pod whose creator set its node: its creation. A rejection removes the condition, too.

    A scheduler that misses the success of its binding marks the pod as unscheduled afterwards. Such a pod was bound
    by its start time, which the kubelet sets.

    Source: k8s.io/kubernetes pkg/scheduler/schedule_one.go, handleBindingCycleError.
    """
    if not pod.spec.node_name:
        return None
    scheduled, started = _condition(pod, "PodScheduled"), pod.status.start_time
    if scheduled is None:
        return None if is_cleared(pod) else created_us(pod, at_us)
    if scheduled.status == "True" or started is None:
        return None
    return max(created_us(pod, at_us), min(to_us(started), at_us))


def created_us(pod: Pod, at_us: int) -> int:
    """The pod's creation, `at_us` at the latest."""
    created = pod.metadata.creation_timestamp
    return dated_us(created, at_us)


def _started_us(record: PodRecord, pod: Pod, clock: Clock | None, at_us: int) -> int | None:
    """When the first container started, as far as it is known."""
    known_us, times = record.started_us, starts(pod)
    if not times:
        return known_us
    first_us = to_us(min(times))
    started_us = min(true_times(first_us, clock)[0] if clock else first_us, at_us)
    return started_us if known_us is None else min(known_us, started_us)


def _requested(record: PodRecord, pod: Pod, at_us: int) -> tuple[int | None, int | None]:
    """The first request of the deletion, with its grace period: the last request, for the object, has none."""
    new_us = _deletion_us(record, pod, at_us)
    if new_us is None or (record.deletion_us is not None and record.deletion_us < new_us):
        return record.deletion_us, record.grace_us
    grace_us = min(pod.metadata.deletion_grace_period_seconds or 0, LONGEST_GRACE_S) * US_PER_SECOND
    return new_us, max(grace_us, record.grace_us or 0) if record.deletion_us == new_us else grace_us


def _deletion_us(record: PodRecord, pod: Pod, at_us: int) -> int | None:
    """When deletion was requested: `deletionTimestamp` minus the grace period.

    If that precedes the pod's creation, the grace period overflowed in the server; then `at_us` is used.

    Source: k8s.io/apiserver pkg/registry/rest/delete.go, BeforeDelete.
    """
    if pod.metadata.deletion_timestamp is None:
        return None
    grace = pod.metadata.deletion_grace_period_seconds or 0
    requested_us = to_us(pod.metadata.deletion_timestamp) - grace * US_PER_SECOND
    return min(requested_us, at_us) if requested_us >= record.created_us else at_us


def marks(record: PodRecord, pod: Pod, at_us: int) -> tuple[int | None, Disrupted | None]:
    """When the scheduler marked the pod as preempted, and any other disruption; `pod` is its newest state."""
    target = target_of(pod)
    if record.preempted_us is None and record.disruption is None and target is None:
        return None, None
    return _preempted_us(record, target, at_us), disruption_of(record, pod, target, at_us)


def _preempted_us(record: PodRecord, target: Condition | None, at_us: int) -> int | None:
    """When the pod was marked as preempted; `target` is its newest condition DisruptionTarget, if it is true.

    The newest state decides because the condition may be withdrawn, but not after the deletion request: PodGC may
    overwrite the condition, which does not undo the preemption. As long as it stands, its first time counts: if two
    pods choose the same victim, kube-scheduler writes the condition again, with a later time.
    """
    if target is None or not is_preemption(target):
        return record.preempted_us if record.deletion_us is not None else None
    time = target.last_transition_time
    marked_us = dated_us(time, at_us)
    return marked_us if record.preempted_us is None else min(marked_us, record.preempted_us)


def _rejected(pod: Pod) -> bool:
    """Whether the kubelet rejected the pod, at first sight or after a restart."""
    status = pod.status
    if status.phase != "Failed":
        return False
    rejected = (status.reason or "").startswith(REJECTION_REASONS) or (status.message or "").startswith(
        "Pod was rejected"
    )
    return rejected and not starts(pod)


def _condition(pod: Pod, kind: str) -> Condition | None:
    for condition in pod.status.conditions or ():
        if condition.type == kind:
            return condition
    return None


def _earliest(known: int | None, new: int | None) -> int | None:
    if new is None or known is None:
        return known if new is None else new
    return min(known, new)
