"""Jobs of batch/v1 whose pods request GPUs, and the GPU-time that counts when a job ends.

A pod that no such Job controls is a job of its own. The GPU-time of a job counts under its outcome as long as the job
has ended and none of its pods holds GPUs; whatever corrects it later also corrects the counters. Jobs are an optional
resource.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from gputally.accounting.base.compact import shared, with_uid, without_uid
from gputally.accounting.base.limits import LimitOverflow, NamespaceLimit
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.facts.outcome import outcome_of
from gputally.accounting.jobs.cost import JobCosts
from gputally.accounting.jobs.failure_policy import JobPolicy, PodEnd, deletion_of, end_of, with_ends
from gputally.accounting.jobs.record import EARLY, JobRecord, by, job_key, judged, record_of
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals
from gputally.model.allocation import Outcome, Segment
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.workloads import Job
from gputally.model.pod_record import PodRecord

Payer = tuple[str, str]
"""The exported tier and tenant."""
Lines = dict[Payer, tuple[int, int]]
"""GPU-time (µs·µGPU) as lines a + b·t."""
NOTHING: Final[Mapping[Payer, tuple[int, int]]] = {}
_NO_ENDS: Final[Mapping[PodEnd, int]] = {}


def lines_of(segments: Sequence[Segment], *, from_us: int) -> Lines:
    """What the segments allocate from `from_us` on."""
    found: Lines = {}
    for each in segments:
        payer, quantity, start_us = each.labels[:2], each.quantity, max(each.start_us, from_us)
        a, b = found.get(payer, (0, 0))
        if each.end_us is None:
            found[payer] = a - quantity * start_us, b + quantity
        else:
            found[payer] = a + quantity * max(0, each.end_us - start_us), b
    return found


def added(known: Mapping[Payer, tuple[int, int]], lines: Mapping[Payer, tuple[int, int]], sign: int = 1) -> Lines:
    """`known` with further lines, or without them."""
    found = dict(known)
    for payer, (a, b) in lines.items():
        known_a, known_b = found.get(payer, (0, 0))
        found[payer] = known_a + sign * a, known_b + sign * b
    return found


class JobTime:
    """The pods of one Job. `present` are its pods in the working state, `departed` deleted ones that may be amended.

    `lines` are of all pods, `ends` of those that are present.
    """

    __slots__ = ("_lines", "departed", "ends", "present")

    def __init__(self, forgotten: Iterable[tuple[str, str, int]] = ()) -> None:
        self._lines: tuple[tuple[Payer, int, int], ...] = ()
        """A tuple: nearly all of thousands of Jobs have one payer, for whom a dict costs three times as much."""
        self.add({(tier, tenant): (amount, 0) for tier, tenant, amount in forgotten})
        self.present: Collection[str] = ()
        self.departed: Collection[str] = ()
        self.ends: Mapping[PodEnd, int] = _NO_ENDS

    @property
    def lines(self) -> Lines:
        """GPU-time (µs·µGPU) by payer."""
        return {payer: (a, b) for payer, a, b in self._lines}

    @property
    def holds_gpus(self) -> bool:
        """Whether any of its pods holds GPUs."""
        return any(b for _, _, b in self._lines)

    def enter(self, uid: str) -> None:
        """A pod is in the working state."""
        self.present = with_uid(self.present, uid)

    def drop(self, uid: str) -> None:
        """A pod leaves the working state."""
        self.present = without_uid(self.present, uid)

    def leave(self, uid: str) -> None:
        """A pod has left the working state, and may still be amended."""
        self.departed = with_uid(self.departed, uid)

    def add(self, lines: Mapping[Payer, tuple[int, int]], sign: int = 1) -> None:
        """Add lines, or take them back."""
        for payer, (a, b) in lines.items():
            for index, (known, known_a, known_b) in enumerate(self._lines):
                if known == payer:
                    line = known, known_a + sign * a, known_b + sign * b
                    self._lines = (*self._lines[:index], line, *self._lines[index + 1 :])
                    break
            else:
                self._lines = (*self._lines, (shared(payer), sign * a, sign * b))

    def add_ends(self, ends: Mapping[PodEnd, int]) -> None:
        """Add how pods ended; negative numbers take that back."""
        if ends:
            found = dict(self.ends)
            for end, count in ends.items():
                found[end] = found.get(end, 0) + count
                if not found[end]:
                    del found[end]
            self.ends = found

    @property
    def payer(self) -> Payer | None:
        """Who had most of its GPU-time; None if nobody had any."""
        amounts = [(a, payer) for payer, a, _ in self._lines if a]
        return max(amounts)[1] if amounts else None


def ends_between(before: PodRecord | None, after: PodRecord | None) -> Mapping[PodEnd, int]:
    """What changes in the ends of pods as `after` replaces `before`; None has not ended."""
    old = end_of(before) if before and before.ending else None
    new = end_of(after) if after and after.ending else None
    if old == new:
        return _NO_ENDS
    return {end: sign for end, sign in ((old, -1), (new, 1)) if end}


def with_time(
    known: Iterable[tuple[str, str, int]], lines: Mapping[Payer, tuple[int, int]]
) -> Iterator[tuple[str, str, int]]:
    """The time of forgotten pods with that of further ones, which have ended."""
    found = {(tier, tenant): amount for tier, tenant, amount in known}
    for payer, (a, _) in lines.items():
        found[payer] = found.get(payer, 0) + a
    return ((*payer, amount) for payer, amount in found.items())


Change = Mapping[Payer, tuple[int, int]]


class Jobs(StatePart[JobRecord]):
    """Jobs by key: those that exist, and deleted ones until their pods are final.

    `is_watched` says that a list of Jobs was complete at any time. Until then a pod does not wait for its Job.
    """

    name = "job"
    document_limit = Kind.JOBS.limit
    kinds = (Kind.JOBS,)

    def __init__(self, totals: Totals, *, is_watched: bool = False) -> None:
        self.costs = JobCosts(totals.accounting_start_us)
        self._totals = totals
        self._is_watched = is_watched
        self._jobs: dict[str, JobRecord] = {}
        self._keys: dict[str, str] = {}
        """Keys of Jobs by UID."""
        self._times: dict[str, JobTime] = {}
        """Times by the key of the Job, also of Jobs that were not observed yet."""
        self._changed: dict[str, JobRecord] = {}
        self._touched: set[str] = set()
        self._with_departed: set[str] = set()
        self._limit = NamespaceLimit(Kind.JOBS.limit, self._displace)

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self._limit.overflow

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        if isinstance(found, Job):
            record = record_of(found, at_us)
            if not self._is_kept(found.metadata.namespace, record):
                return
            if known := self._jobs.get(record.key):
                kept = {field: getattr(known, field) for field in ("forgotten", "ends", "counted", "deleted")}
                suspended_us = known.suspended_us if record.suspended_us is None else record.suspended_us
                record = replace(record, suspended_us=suspended_us, **kept)
            self._update(record.key, record, at_us=at_us)

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`: a Job that had not ended was deleted."""
        if key := self._keys.get(uid):
            self._delete(key, Outcome.DELETED, at_us)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`: nobody observed how a missing Job ended."""
        self._is_watched = True
        for uid in self.known().difference(uids):
            self._delete(self._keys[uid], Outcome.UNKNOWN, at_us)

    def restore(self, documents: Iterable[JobRecord], *, at_us: int) -> None:
        """See `StatePart.restore`; comes before the pods."""
        for each in documents:
            is_posted = each.forgotten or each.ends or each.counted
            if not is_posted and not self._limit.put(each.key.partition("/")[0], each.key):
                self._touched.add(each.uid)
                continue
            self._jobs[each.key] = by(each, at_us)
            self._keys[each.uid] = each.key
            if each.forgotten:
                self._times[each.key] = JobTime(each.forgotten)

    def restore_pod(self, record: PodRecord) -> None:
        """Restore a pod of the working state, as it was posted, which it was once bound."""
        key = job_key(record)
        if key and record.counted is None and record.scheduled_us is not None:
            time = self._times.setdefault(key, JobTime())
            time.enter(record.uid)
            time.add(self._lines(record))
            time.add_ends(ends_between(None, record))

    def restore_departed(self, records: Iterable[PodRecord]) -> None:
        """Restore deleted pods that may still be amended; their Jobs are restored."""
        for record in records:
            key = job_key(record)
            if key in self._jobs and record.counted is None:
                self._times.setdefault(key, JobTime()).leave(record.uid)
                self._with_departed.add(key)

    def suspended_us(self, namespace: str, uid: str) -> int | None:
        """When a Job was suspended last, as queues do to stop all of its pods; None if it never was, or is unknown."""
        job = self._jobs.get(f"{namespace}/{uid}")
        return job.suspended_us if job else None

    def known(self) -> set[str]:
        """UIDs of the Jobs that are known to exist."""
        return {job.uid for job in self._jobs.values() if not job.deleted}

    def policy_of(self, record: PodRecord) -> JobPolicy | None:
        """The policy of the Job that controls a pod; None without one, or if it is not known."""
        job = self._jobs.get(job_key(record) or "")
        return job.policy if job else None

    def suspension_of(self, record: PodRecord) -> int | None:
        """When the Job that controls a pod was suspended last; None without one, or if it is not known."""
        job = self._jobs.get(job_key(record) or "")
        return job.suspended_us if job else None

    def drain(self) -> dict[str, JobRecord | None]:
        """See `StatePart.drain`."""
        changed = {uid: self._jobs.get(self._keys.get(uid, "")) for uid in self._touched}
        self._touched.clear()
        return changed

    def drain_changed(self) -> dict[str, JobRecord]:
        """Jobs since the last call that are new, or whose end is."""
        changed, self._changed = self._changed, {}
        return changed

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        self._touched.update(self._keys)
        self._changed |= {job.uid: job for job in self._jobs.values()}

    def post(self, before: PodRecord | None, after: PodRecord, *, kept: int, at_us: int) -> PodRecord:
        """A pod changed; the first `kept` segments did not. Returns it with how it counts, if it is its own job."""
        key = job_key(after)
        if key is None or (before and before.counted):
            return self._post_alone(before, after, at_us=at_us)
        if after.ending and key not in self._jobs and not self._is_watched:
            self._take_out(key, before)
            return self._post_alone(None, after, at_us=at_us)
        time = self._times.get(key) or self._times.setdefault(key, JobTime())
        change = self._lines(after, kept)
        if before and before.segments:
            change = added(change, self._lines(before, kept), -1)
        job, ends = self._jobs.get(key), ends_between(before, after)
        if job and after.uid in time.departed:
            job = with_forgotten(job, change, ends)
        else:
            if after.uid not in time.present:
                time.enter(after.uid)
            time.add_ends(ends)
        self._update(key, job, change, at_us=at_us)
        return after

    def _take_out(self, key: str, record: PodRecord | None) -> None:
        """A pod counts by itself, no longer with its Job."""
        if record and (time := self._times.get(key)):
            time.drop(record.uid)
            time.add(self._lines(record), -1)
            time.add_ends(ends_between(record, None))
            self._forget_released(key)

    def forget_pod(self, record: PodRecord, *, at_us: int) -> PodRecord:
        """A deleted pod leaves the working state. Without its Job it is its own job: nothing can observe that later."""
        self.costs.add(record, at_us=at_us)
        key = job_key(record)
        job, time = (self._jobs.get(key), self._times.get(key)) if key else (None, None)
        if key is None or time is None or record.uid not in time.present:
            if job and record.scheduled_us is None and (end := deletion_of(record)):
                self._update(job.key, with_forgotten(job, NOTHING, {end: 1}), at_us=at_us)
            return record
        time.drop(record.uid)
        time.add_ends(ends_between(record, None))
        lines = self._lines(record)
        if job is None:
            time.add(lines, -1)
            record = self._post_alone(None, record, at_us=at_us)
        else:
            if lines:
                time.leave(record.uid)
                self._with_departed.add(key)
            self._update(key, with_forgotten(job, lines, ends_between(None, record)), at_us=at_us)
        self._forget_released(key)
        return record

    def forget_departed(self, is_kept: Callable[[str], bool]) -> None:
        """Forget deleted pods that are not kept any more: they are final. So are deleted Jobs without other pods."""
        for key in tuple(self._with_departed):
            time = self._times[key]
            time.departed = tuple(filter(is_kept, time.departed))
            if not time.departed:
                self._with_departed.discard(key)
                self._forget_released(key)

    def open_time(self) -> Iterable[JobTime]:
        """The time of Jobs that does not count yet."""
        return (time for key, time in self._times.items() if key not in self._jobs or not self._jobs[key].counted)

    def _post_alone(self, before: PodRecord | None, after: PodRecord, *, at_us: int) -> PodRecord:
        """Count a pod that is its own job, once its own object shows its end: that of its node is provisional."""
        counted, outcome = before.counted if before else None, outcome_of(after) if after.ending else None
        if counted:
            self._count(counted, self._lines(before), -1, at_us=at_us)
        if outcome:
            self._count(outcome, self._lines(after), 1, at_us=at_us)
        return after if outcome is after.counted else replace(after, counted=outcome)

    def _lines(self, record: PodRecord | None, kept: int = 0) -> Mapping[Payer, tuple[int, int]]:
        segments = record.segments[kept:] if record else ()
        return lines_of(segments, from_us=self._totals.accounting_start_us) if segments else NOTHING

    def _update(self, key: str, record: JobRecord | None, change: Change = NOTHING, *, at_us: int) -> None:
        """Apply a change of a Job or of the time of its pods, and correct what counts by the difference."""
        known, time = self._jobs.get(key), self._times.get(key)
        if time and known and known.counted:
            self._count_job(known.outcome, time, -1, at_us=at_us)
        if time:
            time.add(change)
        if record:
            record = judged(record, time.ends if time else {})
            counted = record.outcome is not Outcome.RUNNING and not (time and time.holds_gpus)
            if time and counted:
                self._count_job(record.outcome, time, 1, at_us=at_us)
            self._keep(replace(record, counted=counted))

    def _count_job(self, outcome: Outcome, time: JobTime, sign: int, *, at_us: int) -> None:
        self._count(outcome, time.lines, sign, at_us=at_us)
        if outcome in EARLY and (payer := time.payer):
            self._totals.count(Total.ENDED_EARLY, (*payer, outcome.value), sign, at_us=at_us)

    def _count(self, outcome: Outcome, lines: Mapping[Payer, tuple[int, int]], sign: int, *, at_us: int) -> None:
        for payer, (a, _) in lines.items():
            if a:
                self._totals.count(Total.JOB, (*payer, str(outcome)), sign * a, at_us=at_us)

    def _keep(self, record: JobRecord) -> None:
        known = self._jobs.get(record.key)
        if known != record:
            self._jobs[record.key] = record
            self._keys[record.uid] = record.key
            self._touched.add(record.uid)
            if known is None or (known.outcome, known.reason, known.ended_us) != _end_of(record):
                self._changed[record.uid] = record

    def _delete(self, key: str, outcome: Outcome, at_us: int) -> None:
        record = self._jobs.get(key)
        if record is None or record.deleted:
            return
        if record.outcome is Outcome.RUNNING:
            record = replace(record, outcome=outcome, ended_us=at_us)
        self._update(key, replace(record, deleted=True), at_us=at_us)
        self._forget_released(key)

    def _forget_released(self, key: str) -> None:
        """Forget a deleted Job, or one that nobody observed, without pods that may change."""
        job, time = self._jobs.get(key), self._times.get(key)
        if (time and (time.present or time.departed)) or (job and not job.deleted):
            return
        self._times.pop(key, None)
        if job:
            self._drop(key)

    def _is_kept(self, namespace: str, record: JobRecord) -> bool:
        """Whether a Job is within the limit, or has pods: their time counts by its outcome."""
        if record.key in self._times:
            self._limit.remove(namespace, record.key)
            return True
        return record.key in self._jobs or self._limit.put(namespace, record.key)

    def _displace(self, _namespace: str, key: str) -> None:
        if key not in self._times:
            self._drop(key)

    def _drop(self, key: str) -> None:
        self._limit.remove(key.partition("/")[0], key)
        if job := self._jobs.pop(key, None):
            del self._keys[job.uid]
            self._touched.add(job.uid)


def with_forgotten(job: JobRecord, lines: Change, ends: Mapping[PodEnd, int]) -> JobRecord:
    """Time and ends of forgotten pods are kept with their Job: a restart does not know these pods."""
    return replace(job, forgotten=tuple(with_time(job.forgotten, lines)), ends=with_ends(job.ends, ends))


def _end_of(record: JobRecord) -> tuple[Outcome, str, int | None]:
    return record.outcome, record.reason, record.ended_us
