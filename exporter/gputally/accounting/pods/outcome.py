"""The outcome of a pod, from its result, its deletion and the end of its node."""

from datetime import UTC, datetime

from msgspec.structs import replace

from gputally.accounting.nodes.node_clock import OFF_US
from gputally.model.allocation import End, Outcome, Result
from gputally.model.kube import Pod, Terminated
from gputally.model.pod import PodRecord

_LAST = datetime.max.replace(tzinfo=UTC)
_COLLECTED = "DeletionByPodGC"


def with_result(known: Result | None, pod: Pod) -> Result:
    """The result of the terminal `pod`, merged with what an earlier or later observation showed.

    A result with an exit code wins: PodGC also sets a phase, when a node is gone.
    """
    new = _result_of(pod)
    if known is None:
        return new
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
    return Result(status.phase, status.reason or reason or _disruption(pod), code, is_own)


def _failed_runs(pod: Pod) -> list[Terminated]:
    mains, inits = pod.status.container_statuses or (), pod.status.init_container_statuses or ()
    ended = (each.state.terminated for each in (*inits, *mains) if each.state)
    return [run for run in ended if run and run.exit_code]


def _disruption(pod: Pod) -> str:
    for condition in pod.status.conditions or ():
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return condition.reason or ""
    return ""
