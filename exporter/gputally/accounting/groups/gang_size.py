"""How many pods a gang has: what its Jobs, its PodGroup objects and its pods say, and what of it survives a restart."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.compact import with_uid, without_uid
from gputally.accounting.base.limits import LimitOverflow, NamespaceLimit
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.groups.gang_members import GangMembers
from gputally.frameworks.all import POD_GROUPS_BY_KIND
from gputally.frameworks.batch import JOB
from gputally.frameworks.framework import OnLoss
from gputally.frameworks.groups import PodGroup, declared_by, gang_of, group_key, key_of
from gputally.frameworks.jobset import JOB_SET, part_of
from gputally.frameworks.lws import LEADER_WORKER_SET
from gputally.frameworks.pod_group_kind import Declared
from gputally.frameworks.stated import MOST_PODS, NO_GANG
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.workloads import Job
from gputally.model.pod_record import PodRecord
from gputally.model.units import to_us

_INDEXED: Final = "Indexed"
_MOST_PARTS: Final = 64
"""Jobs of different names in one JobSet; anyone may label more."""


class GangJob(Struct, frozen=True):
    """A Job with GPUs as a part of a gang that has so many `pods`; a gang of a JobSet has a `part` for each name."""

    group: PodGroup
    part: str
    pods: int
    created_us: int


def gang_job(job: Job) -> tuple[str, GangJob | None]:
    """The key of the gang that a Job is part of, and what it says about it; None if its pods work without each other.

    The Jobs of a JobSet are one gang. Others are gangs if they have one pod for each index, all at once; Kubernetes
    creates PodGroups for the same ones. Where each index may fail a number of times, it works for itself.

    Source: KEP-5547, Job integration with the Workload API.
    """
    meta, spec = job.metadata, job.spec
    labels, pods = meta.labels or {}, min(1 if spec.parallelism is None else spec.parallelism, MOST_PODS)
    created_us = to_us(meta.creation_timestamp) if meta.creation_timestamp else 0
    if group := _job_set(meta.namespace, labels):
        name, replicas = part_of(labels)
        return key_of(group), GangJob(group, name, min(pods * replicas, MOST_PODS), created_us)
    group = PodGroup(JOB, meta.namespace, f"{meta.name}/{meta.uid}", OnLoss.CONTINUE)
    is_gang = spec.completion_mode == _INDEXED and spec.completions == spec.parallelism and pods > NO_GANG
    works_alone = not is_gang or spec.backoff_limit_per_index is not None
    return key_of(group), None if works_alone else GangJob(group, "", pods, created_us)


def _job_set(namespace: str, labels: Mapping[str, str]) -> PodGroup | None:
    """The gang of the JobSet that labels a Job, which labels its pods alike."""
    kept = tuple(labels.items())
    alike = PodRecord(uid="", namespace=namespace, name="", units=(), created_us=0, labels=kept)
    group = gang_of(alike)
    return group if group and group.kind == JOB_SET else None


class GangRecord(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A gang. `parts` are the pods of its Jobs by their names in the JobSet, if Jobs say so.

    `minimums` are what the PodGroup objects that its pods name declare, by the key of the object, and `tasks` the
    minimums of tasks that they declare, by object and task.

    `most` pods existed at once before it was complete, which it was at `complete_us`, but not before `not_before_us`.
    """

    group: PodGroup
    parts: tuple[tuple[str, int], ...] = ()
    most: int = 0
    complete_us: int | None = None
    not_before_us: int = 0
    minimums: tuple[tuple[str, int], ...] = ()
    tasks: tuple[tuple[str, str, int], ...] = ()


def without_pods(known: GangRecord) -> GangRecord:
    """The gang after its last pod is gone: its next pods are a new start."""
    return replace(known, complete_us=None, not_before_us=0, minimums=(), tasks=())


def with_job(known: GangRecord, job: GangJob, *, at_us: int) -> GangRecord:
    """The gang with the size of one of its Jobs. A Job that is as old as the gang belonged to it from the start."""
    parts = dict(known.parts)
    before = parts.get(job.part)
    if before == job.pods or len(parts | {job.part: 0}) > _MOST_PARTS:
        return known
    known = replace(known, parts=tuple(sorted((parts | {job.part: job.pods}).items())))
    if before is None:
        is_open = known.complete_us is not None and job.created_us <= known.complete_us
        return replace(known, complete_us=None if is_open else known.complete_us, not_before_us=0)
    return replace(known, not_before_us=max(known.not_before_us, at_us)) if before and job.pods < before else known


def with_minimum(
    known: GangRecord, name: str, declared: Declared | None, *, needs_object: bool, at_us: int
) -> GangRecord:
    """The gang after a PodGroup object was observed for the first time, or has changed; None for a deleted one.

    An object that is observed late counts since its creation, and a change since it was observed. `needs_object` says
    that it was no gang before.
    """
    minimums = dict(known.minimums)
    before = minimums.pop(name, None)
    tasks = {each for each in known.tasks if each[0] != name}
    if declared:
        minimums[name] = declared.pods
        tasks.update((name, *each) for each in declared.tasks)
    changed = replace(known, minimums=tuple(sorted(minimums.items())), tasks=tuple(sorted(tasks)))
    if changed == known or len(minimums) > _MOST_PARTS:
        return known
    if before is not None or declared is None:
        return replace(changed, not_before_us=max(known.not_before_us, at_us))
    if sum(minimums.values()) > max(known.most, 1) and not needs_object:
        return changed  # as long as so many pods with GPUs do not exist, it changes nothing
    is_open = known.complete_us is not None and declared.created_us <= known.complete_us
    complete_us = None if is_open else known.complete_us
    return replace(changed, complete_us=complete_us, not_before_us=declared.created_us)


class GangMinimums:
    """`declared` by the key of the group object; and the keys of the gangs whose pods name each object."""

    def __init__(self) -> None:
        self.declared: dict[str, Declared] = {}
        self._gangs: dict[str, set[str]] = {}

    def put(self, name: str, found: Declared | None) -> bool:
        """An object is new, has changed or is gone; returns whether that is news. Most updates are of its status."""
        if found is None:
            self.declared.pop(name, None)
            return True
        is_news = found != self.declared.get(name)
        self.declared[name] = found
        return is_news

    def gangs_of(self, name: str) -> list[str]:
        """The keys of the gangs whose pods name an object."""
        return [*self._gangs.get(name, ())]

    def join(self, gang: GangMembers, name: str) -> bool:
        """A pod of the gang names an object, or none; returns whether it is the first one that does."""
        if name in gang.names:
            return False
        gang.names = (*gang.names, name)
        if name:
            self._gangs.setdefault(name, set()).add(gang.key)
        return True

    def leave(self, gang: GangMembers) -> None:
        """A gang has no pods any more."""
        for name in gang.names:
            if keys := self._gangs.get(name):
                keys.discard(gang.key)
                if not keys:
                    del self._gangs[name]

    def forgotten(self, api: str, gangs: Iterable[GangRecord]) -> set[str]:
        """The objects of an API that gangs count on although they do not exist."""
        names = {name for known in gangs for name, _ in known.minimums if name.startswith(f"{api}/")}
        return names - self.declared.keys()


def size_of(gang: GangMembers, known: GangRecord) -> int | None:
    """What its PodGroup objects declare, if they are read; else that of its Jobs, or what its pods state.

    None if all that exist must run. Pods without GPUs are not known. A scheduler of gangs binds no pod before all of a
    gang exist: if there never were as many as objects declare, or pods state, the others have no GPUs.
    """
    if known.minimums and 0 < (declared := _declared(gang, known)) <= max(known.most, NO_GANG):
        return declared
    if gang.needs_object and not known.minimums:
        return NO_GANG
    if known.parts:
        return sum(size for _, size in known.parts)
    if gang.group.kind == LEADER_WORKER_SET and gang.stated:
        return gang.stated - (not gang.has_leader)
    return gang.stated if 0 < gang.stated <= max(known.most, NO_GANG) else None


def _declared(gang: GangMembers, known: GangRecord) -> int:
    """What all of its PodGroup objects declare; 0 if some of its pods name none that is known."""
    minimums = dict(known.minimums)
    return sum(minimums[name] for name in gang.names) if minimums.keys() >= {*gang.names} else 0


class GangJobs:
    """UIDs of Jobs by the key of their gang. `awaiting_uids` are pods whose Job is not known yet."""

    def __init__(self) -> None:
        self.awaiting_uids: set[str] = set()
        self._awaiting: dict[str, Collection[str]] = {}
        """Pods in `awaiting_uids`, by the key of the gang that their Job may be."""
        self._uids: dict[str, set[str]] = {}
        self._key_of: dict[str, str] = {}

    def add(self, uid: str, key: str) -> None:
        """A Job exists."""
        self._key_of[uid] = key
        self._uids.setdefault(key, set()).add(uid)

    def drop(self, uid: str) -> str | None:
        """A Job is deleted; returns the key of its gang."""
        key = self._key_of.pop(uid, None)
        if key is not None:
            self._uids[key].discard(uid)
            if not self._uids[key]:
                del self._uids[key]
        return key

    def known(self) -> set[str]:
        """UIDs of all Jobs."""
        return set(self._key_of)

    def has(self, key: str) -> bool:
        """Whether the gang has a Job."""
        return key in self._uids

    def await_job(self, key: str, uid: str) -> None:
        """Whether a pod is in a gang depends on its Job."""
        self.awaiting_uids.add(uid)
        self._awaiting[key] = with_uid(self._awaiting.get(key, ()), uid)

    def decided(self, key: str) -> Collection[str]:
        """The Job is known now; returns the pods that were awaiting it."""
        uids = self._awaiting.pop(key, ())
        self.awaiting_uids.difference_update(uids)
        return uids

    def awaits_no_longer(self, key: str, uid: str) -> None:
        """A pod is deleted."""
        self.awaiting_uids.discard(uid)
        if left := without_uid(self._awaiting.get(key, ()), uid):
            self._awaiting[key] = left
        else:
            self._awaiting.pop(key, None)


class DeclaredGroups(StatePart[Struct]):
    """The PodGroups of one API. They are listed again at each start.

    `declares` receives each change of what a group says, None if it says nothing any more, and `listed_all` that all
    groups of the API are known.
    """

    name = "declared_group"

    def __init__(
        self, kind: Kind, declares: Callable[[str, Declared | None, int], None], listed_all: Callable[[str, int], None]
    ) -> None:
        self.kinds = (kind,)
        self._api = POD_GROUPS_BY_KIND[kind].api
        self._declares = declares
        self._listed_all = listed_all
        self._key_of: dict[str, str] = {}
        """Keys by UID, of groups that say something."""
        self._uid_of: dict[str, str] = {}
        self._limit = NamespaceLimit(kind.limit, lambda _, uid: self.gone(uid, at_us=self._now_us))
        self._now_us = 0

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self._limit.overflow

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        declared, meta = declared_by(found, at_us=at_us), found.metadata
        self._now_us = at_us
        if declared is None:
            self.gone(meta.uid, at_us=at_us)
            return
        if not self._limit.put(meta.namespace, meta.uid):
            return
        key = group_key(meta.namespace, f"{self._api}/{meta.name}", "")
        self._key_of[meta.uid], self._uid_of[key] = key, meta.uid
        self._declares(key, declared, at_us)

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`; a group of the same name may have replaced it."""
        key = self._key_of.pop(uid, "")
        if not key:
            return
        self._limit.remove(key.split("/")[1], uid)
        if self._uid_of.get(key) == uid:
            del self._uid_of[key]
            self._declares(key, None, at_us)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self._key_of.keys() - {*uids}:
            self.gone(uid, at_us=at_us)
        self._listed_all(self._api, at_us)
