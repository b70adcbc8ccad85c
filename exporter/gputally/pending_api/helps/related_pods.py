"""Pods that are related to a waiting one: what would help it must not happen at their expense, or wait for them."""

from collections.abc import Iterable
from typing import NamedTuple

from gputally.accounting.waiting.fit.packing import Job
from gputally.accounting.waiting.waiting_pod import WaitingPod
from gputally.model.partial_gangs import PartialGang
from gputally.pending_api.pending_now import PendingNow


class RelatedPods(NamedTuple):
    """UIDs of pods: those of the same job that have GPUs, and those that do not end before the pod is bound.

    The latter are those of its own gang, and of gangs that wait for each other. `rival` is the gang that waits for the
    pod's gang while that waits for it.
    """

    siblings: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    rival: PartialGang | None = None


NO_RELATED = RelatedPods()


def deadlocked(now: PendingNow) -> frozenset[str]:
    """UIDs of the pods that gangs hold which wait for each other."""
    keys = {key for each in now.deadlocks for key in each}
    return frozenset(uid for each in now.gangs if each.key in keys for uid in each.pods)


class Relations:
    """The related pods of waiting ones; looks at all pods once, and once at each job and gang, which may be large."""

    def __init__(self, now: PendingNow, waiting: Iterable[WaitingPod]) -> None:
        self._now = now
        jobs = {each.record.full_job for each in waiting}
        self._siblings: dict[Job, set[str]] = {}
        for uid, record in now.records.items():
            if record.segments and record.end_us is None and (job := record.full_job) in jobs:
                self._siblings.setdefault(job, set()).add(uid)
        self._deadlocked = deadlocked(now)
        self._gangs = {uid: each for each in now.gangs for uid in (*each.pods, *each.pending)}
        self._known: dict[tuple[Job, str], RelatedPods] = {}

    def of(self, waiting: WaitingPod) -> RelatedPods:
        """The related pods of one of them."""
        job, gang = waiting.record.full_job, self._gangs.get(waiting.record.uid)
        key = job, gang.key if gang else ""
        if key not in self._known:
            self._known[key] = self._related(job, gang)
        return self._known[key]

    def _related(self, job: Job, gang: PartialGang | None) -> RelatedPods:
        siblings = frozenset(self._siblings.get(job, ()))
        if gang is None:
            return RelatedPods(siblings, self._deadlocked)
        rivals = self._rivals(gang)
        return RelatedPods(siblings, self._deadlocked.union(gang.pods), rivals[0] if len(rivals) == 1 else None)

    def _rivals(self, gang: PartialGang) -> list[PartialGang]:
        keys = {key for each in self._now.deadlocks if gang.key in each for key in each} - {gang.key}
        return [each for each in self._now.gangs if each.key in keys]
