"""Jobs of batch/v1 whose pods request GPUs, and how they ended. They are an optional resource."""

from collections.abc import Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.state_part import StatePart
from gputally.model.allocation import Outcome
from gputally.model.kube import Job, Kind, Object, OwnerReference, Pod
from gputally.model.rules import Rules
from gputally.model.units import to_us
from gputally.shares.request import holds_gpu

_ENDS = {"Complete": Outcome.SUCCEEDED, "Failed": Outcome.FAILED}


class JobRecord(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One Job (one UID). `reason` is that of its condition, such as BackoffLimitExceeded. Times are µs."""

    uid: str
    namespace: str
    name: str
    created_us: int
    outcome: Outcome = Outcome.RUNNING
    reason: str = ""
    ended_us: int | None = None


def is_gpu_job(job: Job, rules: Rules) -> bool:
    """Whether the pods of the Job request GPUs."""
    template = job.spec.template
    return holds_gpu(Pod(metadata=template.metadata, spec=template.spec), rules)


def job_uid(owner: OwnerReference | None) -> str | None:
    """The UID of the Job that controls a pod with this owner, if it is a Job of batch/v1."""
    return owner.uid if owner and owner.kind == "Job" and owner.api_version == "batch/v1" else None


class Jobs(StatePart[JobRecord]):
    """Existing Jobs by UID."""

    name = "job"
    kinds = (Kind.JOBS,)

    def __init__(self) -> None:
        self._jobs: dict[str, JobRecord] = {}
        self._changed: dict[str, JobRecord] = {}
        self._touched: set[str] = set()

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        if isinstance(found, Job):
            self._keep(_record(found, at_us))

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`: a Job that had not ended was deleted."""
        self._forget(uid, Outcome.DELETED, at_us)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`: nobody observed how a missing Job ended."""
        for uid in self._jobs.keys() - uids:
            self._forget(uid, Outcome.UNKNOWN, at_us)

    def restore(self, documents: Iterable[JobRecord], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        self._jobs = {
            each.uid: each if each.ended_us is None else replace(each, ended_us=min(each.ended_us, at_us))
            for each in documents
        }

    def drain(self) -> dict[str, JobRecord | None]:
        """See `StatePart.drain`."""
        changed = {uid: self._jobs.get(uid) for uid in self._touched}
        self._touched.clear()
        return changed

    def drain_changed(self) -> dict[str, JobRecord]:
        """New or changed Jobs since the last call, also deleted ones."""
        changed, self._changed = self._changed, {}
        return changed

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        self._touched.update(self._jobs)
        self._changed |= self._jobs

    def _keep(self, record: JobRecord) -> None:
        if self._jobs.get(record.uid) != record:
            self._jobs[record.uid] = self._changed[record.uid] = record
            self._touched.add(record.uid)

    def _forget(self, uid: str, outcome: Outcome, at_us: int) -> None:
        record = self._jobs.pop(uid, None)
        if record:
            self._touched.add(uid)
            if record.outcome is Outcome.RUNNING:
                self._changed[uid] = replace(record, outcome=outcome, ended_us=at_us)


def _record(job: Job, at_us: int) -> JobRecord:
    meta = job.metadata
    record = JobRecord(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        created_us=min(to_us(meta.creation_timestamp), at_us) if meta.creation_timestamp else at_us,
    )
    for condition in job.status.conditions or ():
        if condition.type in _ENDS and condition.status == "True":
            time = condition.last_transition_time
            ended_us = min(to_us(time), at_us) if time else at_us
            return replace(record, outcome=_ENDS[condition.type], reason=condition.reason or "", ended_us=ended_us)
    return record
