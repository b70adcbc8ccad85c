"""Finds preemptions of jobs, each of pods preempted together, and jobs that are preempted again and again."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.state_part import KeyedPart
from gputally.model.disruptions import (
    CLOSED_US,
    OWN_JOB,
    QUEUE_CAUSES,
    QUEUE_CLOSED_US,
    QUEUE_TOGETHER_US,
    TOGETHER_US,
    Victim,
)
from gputally.model.kube.kinds import Limit
from gputally.model.units import US_PER_DAY

_Job = tuple[str, str, str, str, str, bool]
"""Namespace, kind and name, tier and tenant: a preemption of a job is that of one tenant; and whether by a queue."""
OFTEN: Final = 3
"""From so many preemption times within a day on, a job is a repeat victim."""


class Assigned(NamedTuple):
    """The preemption of a job that a pod is part of, and whether a webhook is to get it.

    `began_us` is when its first pod was observed, None if no queue preempted it.
    """

    id: str
    is_announced: bool
    began_us: int | None


class _First(NamedTuple):
    """The first pod of a preemption of a job, and for which workload a queue preempted it.

    It was decided at `decided_us`; once the watch of pods is complete up to `open_until_us`, no pod is added.
    """

    part: Assigned
    decided_us: int
    open_until_us: int
    by: str

    def includes(self, each: Victim) -> bool:
        """Whether a pod was preempted together with it."""
        apart_us = abs(each.decided_us - self.decided_us)
        is_same = bool(self.by) and self.by == each.named.uid
        return apart_us <= (QUEUE_TOGETHER_US if is_same else TOGETHER_US)


class JobPreemptions:
    """The preemptions of jobs to which pods may still be added, each by the UID of its first pod.

    A pod is assigned once, when its preemption is first observed, and the ledger keeps that. `complete_us` returns up
    to when the watch of pods is complete.
    """

    def __init__(self, complete_us: Callable[[], int]) -> None:
        self._complete_us = complete_us
        self._firsts: dict[_Job, dict[str, _First]] = {}
        self._jobs: dict[str, _Job] = {}
        """Where each is in `_firsts`: the job, tier or tenant of a victim may be learned later."""

    def part_of(self, each: Victim, *, at_us: int, announces: bool) -> Assigned:
        """The preemption of its job that a victim, observed at `at_us`, is part of.

        With `announces`, a webhook is to get new ones.
        """
        if found := next((first for first in self._open(each) if first.includes(each)), None):
            return found.part
        new = Assigned(each.victim_uid, announces, at_us if each.cause in QUEUE_CAUSES else None)
        self._add(each, new)
        return new

    def restore(self, disruptions: Iterable[Victim]) -> None:
        """Restore those of which any pod is known."""
        for each in sorted(disruptions, key=lambda each: each.job_preemption != each.victim_uid):
            if each.job_preemption and each.job_preemption not in self._jobs:
                self._add(each, Assigned(each.job_preemption, each.announced, each.began_us))
        self.advance()

    def advance(self) -> None:
        """Forget those to which no pod is added any more."""
        complete_us = self._complete_us()
        for uid, job in tuple(self._jobs.items()):
            if complete_us >= self._firsts[job][uid].open_until_us:
                self._drop(uid)

    def _add(self, each: Victim, part: Assigned) -> None:
        """A preemption of a job begins; its first pod may have begun one before that was withdrawn."""
        self._drop(part.id)
        until_us = each.decided_us + CLOSED_US if part.began_us is None else part.began_us + QUEUE_CLOSED_US
        self._jobs[part.id] = job = _job_of(each)
        self._firsts.setdefault(job, {})[part.id] = _First(part, each.decided_us, until_us, each.named.uid)

    def _open(self, each: Victim) -> Iterator[_First]:
        """The preemptions of the victim's job to which pods may still be added."""
        complete_us = self._complete_us()
        known = self._firsts.get(_job_of(each), {})
        return (first for first in known.values() if complete_us < first.open_until_us)

    def _drop(self, uid: str) -> None:
        if job := self._jobs.pop(uid, None):
            del self._firsts[job][uid]
            if not self._firsts[job]:
                del self._firsts[job]


def _job_of(each: Victim) -> _Job:
    kind, name = each.job_kind, each.job
    if kind == OWN_JOB:
        kind, name = ("group", each.group) if each.group else (OWN_JOB, each.victim_uid)
    return each.victim_namespace, kind, name, each.victim_tier, each.victim_tenant, each.cause in QUEUE_CAUSES


class PreemptedJob(Struct, frozen=True, kw_only=True, gc=False):
    """The times of the last preemptions of a job (µs), at most `OFTEN`, the oldest first: see `JobPreemptions`."""

    key: str
    tier: str
    tenant: str
    times_us: tuple[int, ...]


class RepeatVictims(KeyedPart[PreemptedJob]):
    """Jobs with a preemption within a day, by namespace, kind and name. Pods without an owner are no jobs."""

    name = "preempted_job"
    document_limit = Limit(None, 10_000)
    """Beyond it, the job that was preempted longest ago is dropped."""
    kinds = ()

    def __init__(self, limit: Callable[[str, str], str]) -> None:
        super().__init__()
        self._limit = limit

    def preempted(self, first: Victim) -> None:
        """A job was preempted, by a scheduler or a queue; `first` is the first pod of it that was observed."""
        if not first.job or first.job_kind == OWN_JOB:
            return
        key = f"{first.victim_namespace}/{first.job_kind}/{first.job}"
        tier, tenant = self._limit("tier", first.victim_tier), self._limit("tenant", first.victim_tenant)
        known = self.known.pop(key, PreemptedJob(key=key, tier=tier, tenant=tenant, times_us=()))
        times_us = tuple(sorted({*known.times_us, first.decided_us}))[-OFTEN:]
        self.known[key] = new = replace(known, tier=tier, tenant=tenant, times_us=times_us)
        if new != known:
            self._touched.add(key)
        if len(self.known) > self.document_limit.most:
            self._remove(min(self.known, key=lambda each: self.known[each].times_us[-1]))

    def advance(self, now_us: int) -> None:
        """See `StatePart.advance`."""
        for key in [key for key, each in self.known.items() if each.times_us[-1] < now_us - US_PER_DAY]:
            self._remove(key)

    def counted(self, now_us: int) -> Counter[tuple[str, str]]:
        """The repeat victims of the last day, by exported tier and tenant; 0 for others that were preempted."""
        found = Counter[tuple[str, str]]()
        for each in self.known.values():
            is_repeated = len(each.times_us) >= OFTEN and each.times_us[0] >= now_us - US_PER_DAY
            found[each.tier, each.tenant] += is_repeated
        return found

    def restore(self, documents: Iterable[PreemptedJob], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for each in documents:
            times_us = tuple(sorted({min(us, at_us) for us in each.times_us}))
            self.known[each.key] = replace(each, times_us=times_us)
