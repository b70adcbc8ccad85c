"""What is kept of a Job of batch/v1 whose pods request GPUs."""

from msgspec import Struct

from gputally.model.allocation import Outcome
from gputally.model.kube import Job, OwnerReference, Pod
from gputally.model.rules import Rules
from gputally.model.units import to_us
from gputally.shares.request import holds_gpu

_ENDS = {"Complete": Outcome.SUCCEEDED, "Failed": Outcome.FAILED}


class JobRecord(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One Job (one UID). `reason` is that of its condition, such as BackoffLimitExceeded. Times are µs.

    `forgotten` is the GPU-time (µs·µGPU) of its pods that are no longer in the working state, by exported tier and
    tenant. `counted` says that the GPU-time of all its pods is in the counters; `deleted` that the object is gone.
    """

    uid: str
    namespace: str
    name: str
    created_us: int
    outcome: Outcome = Outcome.RUNNING
    reason: str = ""
    ended_us: int | None = None
    forgotten: tuple[tuple[str, str, int], ...] = ()
    counted: bool = False
    deleted: bool = False


def is_gpu_job(job: Job, rules: Rules) -> bool:
    """Whether the pods of the Job request GPUs."""
    template = job.spec.template
    return holds_gpu(Pod(metadata=template.metadata, spec=template.spec), rules)


def job_uid(owner: OwnerReference | None) -> str | None:
    """The UID of the Job that controls a pod with this owner, if it is a Job of batch/v1."""
    return owner.uid if owner and owner.kind == "Job" and owner.api_version == "batch/v1" else None


def record_of(job: Job, at_us: int) -> JobRecord:
    """A new record of a Job as observed at `at_us`."""
    meta = job.metadata
    outcome, reason, ended_us = _end(job, at_us)
    return JobRecord(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        created_us=min(to_us(meta.creation_timestamp), at_us) if meta.creation_timestamp else at_us,
        outcome=outcome,
        reason=reason,
        ended_us=ended_us,
    )


def _end(job: Job, at_us: int) -> tuple[Outcome, str, int | None]:
    for condition in job.status.conditions or ():
        if condition.type in _ENDS and condition.status == "True":
            time = condition.last_transition_time
            return _ENDS[condition.type], condition.reason or "", min(to_us(time), at_us) if time else at_us
    return Outcome.RUNNING, "", None
