"""Counts how many nodes the pods of each job occupy, and how few would hold them: kept up to date job by job."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Final, NamedTuple

from gputally.accounting.base.compact import with_uid, without_uid
from gputally.model.disruptions import OWN_JOB
from gputally.model.needs import Amounts, Place
from gputally.model.pod_record import PodRecord
from gputally.placement.fit import nodes_needed
from gputally.placement.room import Room

MOST_JOBS: Final = 20
"""Changed jobs that are looked at in one step, some 50 µs for each."""
_SEVERAL: Final = 2
"""One pod cannot be packed."""
Job = tuple[str, str, str]
"""Namespace, kind and name."""


class JobNodes(NamedTuple):
    """The nodes that the pods of a job occupy, and the smallest number of nodes of the same model that would hold them.

    `tier` is the exported one of its pods.
    """

    tier: str
    used: int
    needed: int


class Packing:
    """Jobs with several bound pods of equal requests, all on nodes of one model; `of` has their nodes.

    `pods` are all pods with GPUs, by UID. `labels_of` returns the exported GPU model and pool of a node.
    """

    def __init__(self, room: Room, pods: Mapping[str, PodRecord], labels_of: Callable[[str], tuple[str, str]]) -> None:
        self.of: dict[Job, JobNodes] = {}
        self._used = Counter[str]()
        """Nodes used by exported tier, and those needed."""
        self._needed = Counter[str]()
        self._room = room
        self._pods = pods
        self._labels_of = labels_of
        self._jobs: dict[Job, Collection[str]] = {}
        """UIDs of the bound pods."""
        self._job_of: dict[str, Job] = {}
        self._due: dict[Job, None] = {}
        self._offers: dict[str, Counter[Amounts]] = {}
        """The number of nodes by GPU model and allocatable amounts."""
        self._offer_of: dict[str, tuple[str, Place]] = {}

    @property
    def is_behind(self) -> bool:
        """Whether jobs are still to be looked at."""
        return bool(self._due) and self._room.is_complete

    def pod_changed(self, record: PodRecord, *, is_gone: bool) -> None:
        """A pod with GPUs has changed or is gone."""
        uid, known = record.uid, self._job_of.get(record.uid)
        is_bound = record.scheduled_us is not None and record.end_us is None and not is_gone
        job = record.full_job if is_bound and record.segments and record.job_kind != OWN_JOB else None
        if known == job:
            return
        if known:
            self._drop(uid, known)
        if job:
            self._add(uid, job)

    def nodes_changed(self, names: Collection[str]) -> None:
        """Update what the nodes offer after they, or pods on them, have changed."""
        kinds = sum(map(len, self._offers.values()))
        for name in names:
            self._offer(name)
        if sum(map(len, self._offers.values())) != kinds:
            self._due.update(dict.fromkeys(self._jobs))

    def step(self) -> None:
        """Look at some of the jobs that have changed, once it is known what their pods take."""
        for job in tuple(islice(self._due, MOST_JOBS)) if self._room.is_complete else ():
            del self._due[job]
            self._set(job, self._nodes_of_job(job))
        if not self._due:
            self._due.clear()  # frees the room of all jobs, which are due at the start

    def sums(self) -> dict[str, tuple[int, int]]:
        """Nodes used and needed by exported tier."""
        return {tier: (used, self._needed[tier]) for tier, used in self._used.items() if used}

    def _set(self, job: Job, found: JobNodes | None) -> None:
        """Replace what is known of a job, and correct the sums."""
        for each, sign in ((self.of.pop(job, None), -1), (found, 1)):
            if each:
                self._used[each.tier] += sign * each.used
                self._needed[each.tier] += sign * each.needed
        if found:
            self.of[job] = found

    def _add(self, uid: str, job: Job) -> None:
        uids = self._jobs.get(job, ())
        for each in uids:  # one object for all pods of a job
            job = self._job_of[each]
            break
        self._job_of[uid] = job
        self._jobs[job] = with_uid(uids, uid)
        self._due[job] = None

    def _drop(self, uid: str, job: Job) -> None:
        del self._job_of[uid]
        self._due[job] = None
        self._jobs[job] = without_uid(self._jobs[job], uid)
        if not self._jobs[job]:
            del self._jobs[job]

    def _offer(self, name: str) -> None:
        node, known = self._room.nodes.get(name), self._offer_of.get(name)
        place = node.place if node else None
        if place is (known[1] if known else None):
            return  # only its pods have changed
        if known:
            model, old = self._offer_of.pop(name)
            self._offers[model][old.offered] -= 1
            if not self._offers[model][old.offered]:
                del self._offers[model][old.offered]
        if place:
            model = self._labels_of(name)[0]
            self._offer_of[name] = model, place
            self._offers.setdefault(model, Counter())[place.offered] += 1

    def _nodes_of_job(self, job: Job) -> JobNodes | None:
        """The nodes of a job, if it can be said how few would do."""
        pods = [self._pods[uid] for uid in self._jobs.get(job, ())]
        nodes = {pod.node for pod in pods}
        models = {self._offer_of[node][0] if node in self._offer_of else None for node in nodes}
        amounts = {self._amounts(pod.uid, pod.node) for pod in pods}
        if len(pods) < _SEVERAL or len(models) != 1 or len(amounts) != 1:
            return None
        [of_each], [model] = amounts, models
        needed = nodes_needed(of_each, len(pods), self._offers[model]) if of_each and model is not None else None
        return JobNodes(pods[-1].segments[-1].labels[0], len(nodes), needed) if needed else None

    def _amounts(self, uid: str, node: str) -> Amounts | None:
        """What the pod takes; None if that is not known."""
        found = self._room.nodes.get(node)
        taken = found.taken.get(uid) if found else None
        return taken.amounts if taken else None
