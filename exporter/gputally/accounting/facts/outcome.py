"""The outcome of a pod, from its result, its disruption, its deletion and the end of its node."""

from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from gputally.accounting.facts.node_clock import OFF_US
from gputally.frameworks.kai import kai_eviction_in
from gputally.frameworks.kueue import TERMINATION_TARGET, cause_of, is_eviction, queue_preemptor_in
from gputally.model.allocation import End, Outcome, Result
from gputally.model.disruptions import Cause, Disrupted, QueuePreemptor
from gputally.model.kube.meta import Condition
from gputally.model.kube.pods import Pod, Terminated
from gputally.model.pod_record import PodRecord
from gputally.model.units import dated_us

_LAST = datetime.max.replace(tzinfo=UTC)
_COLLECTED = "DeletionByPodGC"
PREEMPTION_REASONS: Final = ("PreemptionByScheduler", "PreemptionByKubeScheduler")
"""Kubernetes 1.25 and 1.26 write the second."""
_CAUSES: Final = {
    "DeletionByTaintManager": Cause.TAINT,
    "DeletionByDeviceTaintManager": Cause.DEVICE_TAINT,
    "EvictionByEvictionAPI": Cause.EVICTION,
    "DeletionByPodGC": Cause.NODE_LOST,
}
"""Causes by the reason of the condition DisruptionTarget.

Source: k8s.io/api core/v1 types.go; k8s.io/kubernetes pkg/controller tainteviction, devicetainteviction and podgc,
pkg/registry/core/pod/storage/eviction.go.
"""
_BY_KUBELET: Final = {
    "Evicted": Cause.NODE_PRESSURE,
    "Terminated": Cause.NODE_SHUTDOWN,
    "Preempting": Cause.KUBELET_ADMISSION,
}
"""Causes by `status.reason`. Source: k8s.io/kubernetes pkg/kubelet eviction, nodeshutdown and preemption."""


def with_result(known: Result | None, pod: Pod) -> Result:
    """The result of the terminal `pod`, merged with what an earlier or later observation showed.

    A result with an exit code wins: PodGC also sets a phase, when a node is gone.
    """
    new = _result_of(pod)
    if known is None or known == new:
        return known or new
    better = max(known, new, key=_order)
    return better if better.is_own else replace(better, is_own=known.is_own or new.is_own)


def outcome_of(record: PodRecord) -> Outcome:
    """What became of the pod. The container of a deleted pod may end with any exit code, so deletion comes first."""
    result, deletion_us = record.result, record.deletion_us
    if record.end_us is None:
        return Outcome.RUNNING
    if result and result.is_own:
        return _by_itself(result)
    if record.preempted_us is not None and deletion_us is not None:
        return Outcome.PREEMPTED
    if result and (deletion_us is None or deletion_us > record.end_us + OFF_US):
        return _by_itself(result)
    if deletion_us is not None or record.end_by is End.DELETED:
        return Outcome.DELETED
    return Outcome.LOST if record.end_by is End.NODE else Outcome.UNKNOWN


def _by_itself(result: Result) -> Outcome:
    if result.reason == _COLLECTED and result.exit_code is None:
        return Outcome.LOST
    return Outcome.SUCCEEDED if result.phase == "Succeeded" else Outcome.FAILED


def _order(result: Result) -> tuple[bool, str, int, str]:
    code = result.exit_code
    return code is not None, result.phase, code or 0, result.reason


def _result_of(pod: Pod) -> Result:
    status, is_own = pod.status, pod.metadata.deletion_timestamp is None
    if status.phase == "Succeeded":
        return Result("Succeeded", status.reason or "", 0, is_own)
    failed = min(_failed_runs(pod), key=lambda run: run.finished_at or _LAST, default=None)
    reason, code = (failed.reason, failed.exit_code) if failed else (None, None)
    target = target_of(pod)
    disruption = target.reason if target else None
    return Result(status.phase, status.reason or reason or disruption or "", code, is_own)


def _failed_runs(pod: Pod) -> list[Terminated]:
    mains, inits = pod.status.container_statuses or (), pod.status.init_container_statuses or ()
    ended = (each.state.terminated for each in (*inits, *mains) if each.state)
    return [run for run in ended if run and run.exit_code]


def disruption_of(record: PodRecord, pod: Pod, target: Condition | None, at_us: int) -> Disrupted | None:
    """The disruption of a pod whose newest state is `pod`, with the condition `target`.

    A condition may be withdrawn, but not once the pod has ended or its deletion was requested: what is written later,
    as by PodGC, does not change why. A condition that is later than somebody's deletion request is not the cause.
    """
    known, is_final = record.disruption, record.deletion_us is not None or record.ending is not None
    if known and is_final:
        return known
    new = _reported(pod, target, at_us)
    if new and record.deletion_us is not None and new.at_us > record.deletion_us + OFF_US:
        return None
    return new


def target_of(pod: Pod) -> Condition | None:
    """The condition DisruptionTarget, if it is true; else that of a queue system."""
    found = None
    for condition in pod.status.conditions or ():
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return condition
        if condition.type == TERMINATION_TARGET and condition.status == "True":
            found = condition
    return found if found and is_eviction(found) else None


def is_preemption(target: Condition) -> bool:
    """Whether the scheduler wrote the condition to make room; KAI writes the same reason whenever it evicts a pod."""
    return _by_scheduler(target) is Cause.PREEMPTION


def _by_scheduler(target: Condition) -> Cause | None:
    """Why a scheduler wrote the condition; None if another component did."""
    if target.reason not in PREEMPTION_REASONS:
        return None
    by_kai = kai_eviction_in(target.message)
    return by_kai.cause if by_kai else Cause.PREEMPTION


def _reported(pod: Pod, target: Condition | None, at_us: int) -> Disrupted | None:
    if target is None or is_preemption(target):
        return None
    if by_scheduler := _by_scheduler(target):
        cause = by_scheduler
    elif target.type == TERMINATION_TARGET:
        cause = cause_of(target)
    else:
        cause = _CAUSES.get(target.reason or "") or _BY_KUBELET.get(pod.status.reason or "", Cause.OTHER)
    by = queue_preemptor_in(target.message) if cause is Cause.QUEUE_PREEMPTION else QueuePreemptor()
    return Disrupted(cause, dated_us(target.last_transition_time, at_us), by)
