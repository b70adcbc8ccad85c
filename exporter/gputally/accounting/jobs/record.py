"""What is kept of a Job of batch/v1 whose pods request GPUs, and whether preemptions ended it early."""

from collections.abc import Container, Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.state_part import no_later
from gputally.accounting.jobs.failure_policy import (
    DELETED,
    FAIL_JOB,
    IGNORE,
    PREEMPTED,
    SUCCEEDED,
    CountedEnds,
    JobPolicy,
    PodEnd,
    ends_by,
    policy_of,
)
from gputally.model.allocation import Outcome
from gputally.model.kube.meta import Condition, OwnerReference
from gputally.model.kube.pods import Pod
from gputally.model.kube.workloads import Job
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.units import dated_us
from gputally.shares.request import holds_gpu

_ENDS = {"Complete": Outcome.SUCCEEDED, "Failed": Outcome.FAILED}
_FAILING = ("FailureTarget", "Failed")
"""The conditions of a Job that has given up; the second one is that of a Job whose pods have ended, too."""
EARLY: Final = (Outcome.COMPLETED_EARLY, Outcome.FAILED_EARLY)
_BY_CONDITION: Final = {Outcome.COMPLETED_EARLY: Outcome.SUCCEEDED, Outcome.FAILED_EARLY: Outcome.FAILED}
_Ends = Mapping[PodEnd, int]


class JobRecord(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One Job (one UID). `reason` is that of its condition, such as BackoffLimitExceeded. Times are µs.

    `forgotten` is the GPU-time (µs·µGPU) of its pods that are no longer in the working state, by exported tier and
    tenant, and `ends` says how they ended. `counted` says that the GPU-time of all its pods is in the counters;
    `deleted` that the object is gone. `failing_us` is when it gave up, `suspended_us` when it was suspended last; its
    `successes` and `failures` are kept once it has ended.
    """

    uid: str
    namespace: str
    name: str
    created_us: int
    outcome: Outcome = Outcome.RUNNING
    reason: str = ""
    ended_us: int | None = None
    policy: JobPolicy = JobPolicy()
    successes: int = 0
    failures: int = 0
    failing_us: int | None = None
    suspended_us: int | None = None
    forgotten: tuple[tuple[str, str, int], ...] = ()
    ends: CountedEnds = ()
    counted: bool = False
    deleted: bool = False

    @property
    def key(self) -> str:
        """Identifies the Job among those that pods name: see `job_key`."""
        return f"{self.namespace}/{self.uid}"


def is_gpu_job(job: Job, rules: Rules) -> bool:
    """Whether the pods of the Job request GPUs."""
    template = job.spec.template
    return holds_gpu(Pod(metadata=template.metadata, spec=template.spec), rules)


def job_uid(owner: OwnerReference | None) -> str | None:
    """The UID of the Job that controls a pod with this owner, if it is a Job of batch/v1."""
    return owner.uid if owner and owner.kind == "Job" and owner.api_version == "batch/v1" else None


def job_key(record: PodRecord) -> str | None:
    """The key of the Job that controls a pod: an owner is in the namespace of its pods, and tenants choose UIDs."""
    uid = job_uid(record.owner)
    return f"{record.namespace}/{uid}" if uid else None


def record_of(job: Job, at_us: int) -> JobRecord:
    """A new record of a Job as observed at `at_us`."""
    meta, status = job.metadata, job.status
    outcome, reason, ended_us = _end(job, at_us)
    has_ended = outcome is not Outcome.RUNNING
    return JobRecord(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        created_us=dated_us(meta.creation_timestamp, at_us),
        outcome=outcome,
        reason=reason,
        ended_us=ended_us,
        policy=policy_of(job.spec),
        successes=(status.succeeded or 0) if has_ended else 0,
        failures=(status.failed or 0) if has_ended else 0,
        failing_us=min((_since_us(each, at_us) for each in _true(job, _FAILING)), default=None),
        suspended_us=min((_since_us(each, at_us) for each in _true(job, ("Suspended",))), default=None),
    )


def by(record: JobRecord, at_us: int) -> JobRecord:
    """The record as of `at_us`."""
    times = ("ended_us", "failing_us", "suspended_us")
    return replace(no_later(record, at_us, *times), ends=ends_by(record.ends, at_us))


def _end(job: Job, at_us: int) -> tuple[Outcome, str, int | None]:
    for condition in _true(job, _ENDS):
        return _ENDS[condition.type], condition.reason or "", _since_us(condition, at_us)
    return Outcome.RUNNING, "", None


def _true(job: Job, types: Container[str]) -> Iterator[Condition]:
    conditions = job.status.conditions or ()
    return (each for each in conditions if each.type in types and each.status == "True")


def _since_us(condition: Condition, at_us: int) -> int:
    time = condition.last_transition_time
    return dated_us(time, at_us)


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
