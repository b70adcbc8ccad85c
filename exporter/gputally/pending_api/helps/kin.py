"""Pods that are bound up with a waiting one: what would help it must not happen at their expense, or wait for them."""

from collections.abc import Iterable
from typing import NamedTuple

from gputally.accounting.waiting.waiting_pod import WaitingPod
from gputally.model.placement.partial_gang import PartialGang
from gputally.model.pod import PodRecord
from gputally.pending_api.pending_now import PendingNow

Job = tuple[str, str, str]
"""Namespace, kind and name."""


class Kin(NamedTuple):
    """UIDs of pods: those of the same job that have GPUs, and those that end no earlier than the pod is bound.

    `rival` is the gang that waits for the pod's gang while that waits for it.
    """

    siblings: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    rival: PartialGang | None = None


NO_KIN = Kin()


class Kinship:
    """The kin of some waiting pods; looks at all pods once."""

    def __init__(self, now: PendingNow, waiting: Iterable[WaitingPod]) -> None:
        self._now = now
        jobs = {_job_of(each.record) for each in waiting}
        self._siblings: dict[Job, set[str]] = {}
        for uid, record in now.records.items():
            if record.segments and record.end_us is None and (job := _job_of(record)) in jobs:
                self._siblings.setdefault(job, set()).add(uid)
        self._gangs = {uid: each for each in now.gangs for uid in (*each.pods, *each.pending)}

    def of(self, waiting: WaitingPod) -> Kin:
        """The kin of one of them."""
        siblings = frozenset(self._siblings.get(_job_of(waiting.record), ()))
        gang = self._gangs.get(waiting.record.uid)
        if gang is None:
            return Kin(siblings)
        rivals = self._rivals(gang)
        stuck = frozenset(uid for each in (gang, *rivals) for uid in each.pods)
        return Kin(siblings, stuck, rivals[0] if len(rivals) == 1 else None)

    def _rivals(self, gang: PartialGang) -> list[PartialGang]:
        keys = {key for each in self._now.deadlocks if gang.key in each for key in each} - {gang.key}
        return [each for each in self._now.gangs if each.key in keys]


def _job_of(record: PodRecord) -> Job:
    return record.namespace, record.job_kind, record.job
