"""Since when all pods of each gang run, which decides whether its running pods wait for others.

A gang is complete once as many of its pods as it has ran at once. From then on it stays complete: what its pods wait
for after the loss of another one is lost work. Until then, its running pods are in state `gang_wait`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from gputally.accounting.base.state_part import KeyedPart, StatePart, no_later
from gputally.accounting.groups.gang_members import GangMembers, Stage, together_us, until_us
from gputally.accounting.groups.gang_size import (
    DeclaredGroups,
    GangJob,
    GangJobs,
    GangMinimums,
    GangRecord,
    gang_job,
    size_of,
    with_job,
    with_minimum,
    without_pods,
)
from gputally.frameworks.all import POD_GROUPS_BY_KIND
from gputally.frameworks.batch import JOB
from gputally.frameworks.groups import POD_GROUP, PodGroup, gang_of, key_for, key_of
from gputally.frameworks.lws import LEADER_WORKER_SET, is_leader
from gputally.frameworks.pod_group_kind import Declared
from gputally.frameworks.stated import NO_GANG
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.workloads import Job
from gputally.model.pod_record import INCOMPLETE, PodRecord
from gputally.model.rules import Rules

_LONG_AGO: Final = 0
"""When gangs were complete whose pods ran before the ledger knew gangs."""


class GangStates(KeyedPart[GangRecord]):
    """The gangs of pods with GPUs.

    `records` are the pods by UID; `is_known` says whether the Job that controls a pod is known. `members` are the pods
    of gangs by the gang's key. `partial` are the keys of incomplete gangs that hold GPUs, `changed` of those that may
    differ from when somebody last cleared it. `redeclared` are PodGroup objects, likewise.
    """

    name = "gangs"
    kinds = (Kind.JOBS,)

    def __init__(self, records: Mapping[str, PodRecord], is_known: Callable[[PodRecord], bool], rules: Rules) -> None:
        super().__init__()
        self.members: dict[str, GangMembers] = {}
        self.partial: set[str] = set()
        self.changed: set[str] = set()
        self._records = records
        self._is_known = is_known
        self._gang_of: dict[str, GangMembers] = {}
        self._jobs = GangJobs()
        self._reads_objects = not POD_GROUPS_BY_KIND.keys().isdisjoint(rules.watched)
        self._group_of = partial(gang_of, reads_objects=self._reads_objects)
        self.minimums = GangMinimums()
        self.redeclared: set[str] = set()
        declared = (DeclaredGroups(kind, self.declares, self.groups_listed) for kind in POD_GROUPS_BY_KIND)
        self.parts: tuple[StatePart[Any], ...] = (self, *declared)
        self._old: set[str] = set()
        """Keys of Jobs whose pods ran before the ledger knew gangs."""
        self._outdated: dict[str, int] = {}
        self._is_listed = False
        """Whether this process knows which Jobs exist."""

    def updated(self, before: PodRecord | None, record: PodRecord, *, at_us: int) -> PodRecord:
        """A pod is new or has changed; returns it with its `gang_until_us`."""
        complete_us = self._until_us(before, record, at_us)
        return record if complete_us == record.gang_until_us else replace(record, gang_until_us=complete_us)

    def drop(self, record: PodRecord, *, at_us: int) -> None:
        """A pod is deleted."""
        self._outdated.pop(record.uid, None)
        if record.uid in self._gang_of:
            self._leave(record.uid, at_us)
        elif record.uid in self._jobs.awaiting_uids and (group := self._group_of(record)):
            self._jobs.awaits_no_longer(key_of(group), record.uid)

    def outdated(self) -> Iterator[tuple[str, int]]:
        """Pods whose `gang_until_us` may have changed since the last call, and when that was noticed."""
        while self._outdated:
            yield self._outdated.popitem()

    def of(self, uid: str) -> GangMembers | None:
        """The gang of a pod."""
        return self._gang_of.get(uid)

    def size_of(self, gang: GangMembers) -> int | None:
        """How many pods must run; None if those that exist do."""
        return size_of(gang, self.known[gang.key])

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`; comes after `Jobs`."""
        if isinstance(found, Job):
            key, job = gang_job(found)
            if job:
                self._jobs.add(found.metadata.uid, key)
                self._job_seen(key, job, at_us)
            else:
                self._jobs.decided(key)
                self._old.discard(key)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        if key := self._jobs.drop(uid):
            self._forget_if_empty(key)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        self._is_listed = True
        for uid in self._jobs.known() - set(uids):
            self.gone(uid, at_us=at_us)
        for key in tuple(self.known):
            self._forget_if_empty(key)

    def declares(self, name: str, found: Declared | None, at_us: int) -> None:
        """A PodGroup object is new, has changed or is gone; its pods may have come before it."""
        if self.minimums.put(name, found):
            self.redeclared.add(name)
            for key in self.minimums.gangs_of(name):
                self._redeclare(self.members[key], name, found, at_us)
                self._resized(key, at_us)

    def groups_listed(self, api: str, at_us: int) -> None:
        """All PodGroup objects of an API are known: others were deleted while nobody watched."""
        for name in self.minimums.forgotten(api, self.known.values()):
            self.declares(name, None, at_us)

    def _redeclare(self, gang: GangMembers, name: str, found: Declared | None, at_us: int) -> None:
        known, needs_object = self.known[gang.key], gang.needs_object
        self._store(gang.key, with_minimum(known, name, found, needs_object=needs_object, at_us=at_us))

    def restore(self, documents: Iterable[GangRecord], *, at_us: int) -> None:
        """See `StatePart.restore`; comes before the pods."""
        for each in documents:
            known = each if self._reads_objects else replace(each, minimums=(), tasks=())
            self.known[key_of(each.group)] = no_later(known, at_us, "complete_us", "not_before_us")

    def pod_restored(self, record: PodRecord) -> None:
        """A pod of an earlier process."""
        group = self._group_of(record)
        if group is None:
            return
        key = key_of(group)
        is_old = key not in self.known and record.started_us is not None and record.gang_until_us is None
        if group.kind == JOB and key not in self.known:
            self._jobs.await_job(key, record.uid)
            self._old.update({key} if is_old else ())
            return
        gang = self._enter(group, record)
        gang.put(record)
        if is_old:
            self._store(key, replace(self.known[key], complete_us=_LONG_AGO))
        gang.known_complete_us = self.known[key].complete_us
        self._mark(gang)

    def _until_us(self, before: PodRecord | None, record: PodRecord, at_us: int) -> int | None:
        if before is None or before.labels is not record.labels:
            self._join(record, at_us)
        gang = self._gang_of.get(record.uid)
        if gang is None:
            return _LONG_AGO if record.uid in self._jobs.awaiting_uids else None
        was_waiting, is_new = record.uid in gang.waiting, record.uid not in gang.stages
        if gang.put(record):
            if is_new:
                self._came(gang, record)
            elif was_waiting and gang.stages[record.uid] is Stage.OVER:
                self._left(gang, until_us(record))
            self._check(gang, at_us=at_us, newest=record)
        elif gang.key in self.partial:
            self.changed.add(gang.key)
        complete_us, not_before_us = self.known[gang.key].complete_us, self.known[gang.key].not_before_us
        if self.size_of(gang) == NO_GANG and not not_before_us:
            return None
        return INCOMPLETE if complete_us is None else complete_us

    def _join(self, record: PodRecord, at_us: int) -> None:
        group, gang = self._group_of(record), self._gang_of.get(record.uid)
        if gang and gang.group == group:
            return
        if gang:
            self._leave(record.uid, at_us)
        if group is None:
            return
        key = key_of(group)
        if group.kind != JOB or key in self.known:
            self._enter(group, record)
        elif not self._is_known(record):
            self._jobs.await_job(key, record.uid)

    def _enter(self, group: PodGroup, record: PodRecord) -> GangMembers:
        key = key_of(group)
        if key not in self.known:
            self._store(key, GangRecord(group=group))
        gang = self.members.get(key) or self.members.setdefault(key, GangMembers(group, key))
        gang.stated = max(gang.stated, record.gang_size)
        gang.has_leader |= group.kind == LEADER_WORKER_SET and is_leader(record)
        self._gang_of[record.uid] = gang
        if self._reads_objects:
            gang.needs_object = group.kind == POD_GROUP and not (record.gang or record.scheduling_group)
            name = key_for(record)
            if self.minimums.join(gang, name) and (found := self.minimums.declared.get(name)):
                self._redeclare(gang, name, found, record.created_us)
        return gang

    def _leave(self, uid: str, at_us: int) -> None:
        gang = self._gang_of.pop(uid)
        was_waiting = uid in gang.waiting
        gang.drop(uid)
        if gang.stages:
            if was_waiting:
                self._left(gang, at_us)
            self._check(gang, at_us=at_us)
        else:
            del self.members[gang.key]
            self.minimums.leave(gang)
            self._not_partial(gang.key)
            self._forget_if_empty(gang.key)

    def _came(self, gang: GangMembers, record: PodRecord) -> None:
        """A new pod is one more that the gang waits for, unless it replaces one."""
        known, is_open = self.known[gang.key], self.size_of(gang) is None
        if known.complete_us is not None and record.created_us > known.complete_us:
            return
        most = max(known.most, gang.present) if gang.stated or any(gang.names) else known.most
        reopens = known.complete_us is not None and is_open and not gang.has_lost
        if reopens or most > known.most:
            self._store(gang.key, replace(known, most=most, complete_us=None if reopens else known.complete_us))

    def _left(self, gang: GangMembers, at_us: int) -> None:
        """The others waited for a pod that never started; now it is gone."""
        known = self.known[gang.key]
        if known.complete_us is None and self.size_of(gang) is None:
            self._store(gang.key, replace(known, not_before_us=max(known.not_before_us, at_us)))

    def _check(self, gang: GangMembers, *, at_us: int, newest: PodRecord | None = None) -> None:
        """Whether a gang is complete now; `newest` is a pod that is not among the records yet."""
        known, size = self.known[gang.key], self.size_of(gang)
        if known.complete_us is None and gang.may_be_complete(size, known.tasks):
            records = (newest if newest and uid == newest.uid else self._records[uid] for uid in gang.stages)
            complete_us = together_us(records, size, gang.required(known.tasks))
            if complete_us is not None:
                self._store(gang.key, replace(known, complete_us=max(complete_us, known.not_before_us)))
        if self.known[gang.key].complete_us != gang.known_complete_us:
            gang.known_complete_us = self.known[gang.key].complete_us
            self._invalidate(gang, at_us)
        self._mark(gang)

    def _invalidate(self, gang: GangMembers, at_us: int) -> None:
        self._outdated.update((uid, at_us) for uid, stage in gang.stages.items() if stage >= Stage.RUNNING)

    def _mark(self, gang: GangMembers) -> None:
        if self.known[gang.key].complete_us is None and gang.bound:
            self.partial.add(gang.key)
            self.changed.add(gang.key)
        elif gang.key in self.partial:
            self._not_partial(gang.key)

    def _not_partial(self, key: str) -> None:
        self.partial.discard(key)
        self.changed.add(key)

    def _job_seen(self, key: str, job: GangJob, at_us: int) -> None:
        before = self.known.get(key)
        known = with_job(before or GangRecord(group=job.group), job, at_us=at_us)
        if key in self._old:
            self._old.discard(key)
            known = replace(known, complete_us=_LONG_AGO)
        if known != before:
            self._store(key, known)
        for uid in self._jobs.decided(key):
            self._enter(job.group, self._records[uid]).put(self._records[uid])
            self._outdated[uid] = at_us
        if known != before:
            self._resized(key, at_us)

    def _resized(self, key: str, at_us: int) -> None:
        """A gang may have another size."""
        if gang := self.members.get(key):
            self._check(gang, at_us=at_us)
            self._invalidate(gang, at_us)

    def _forget_if_empty(self, key: str) -> None:
        """Reset a gang without pods, so that its next pods count as a new start; forget it if it has no Jobs either."""
        known = self.known.get(key)
        if known is None or key in self.members:
            return
        if self._jobs.has(key) or (known.parts and not self._is_listed):
            fresh = without_pods(known)
            if fresh != known:
                self._store(key, fresh)
        else:
            self._remove(key)
