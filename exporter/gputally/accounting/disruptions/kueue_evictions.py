"""Evictions by Kueue, as its Workloads report them: of suspended jobs, no pod says why it was deleted."""

from collections.abc import Collection, Iterable
from typing import Final

from gputally.accounting.base.limits import LimitOverflow, NamespaceLimit
from gputally.accounting.base.state_part import KeyedPart, no_later
from gputally.accounting.disruptions.kueue_workload_names import Name, PodWorkloads, WorkloadName, name_of
from gputally.accounting.facts.node_clock import OFF_US
from gputally.frameworks.kueue import WORKLOAD, KueueWorkload, queue_preemptor_in
from gputally.model.disruptions import Cause, Disrupted, QueuePreemptor, Victim
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Condition, Object
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND, dated_us

_LATE_US: Final = 60 * US_PER_SECOND
"""How long after an eviction pods are deleted because of it, if only their deletion is known."""


class EvictedWorkload(WorkloadName, frozen=True, kw_only=True, gc=False):
    """A Workload with its priority in queues that was evicted, last at `evicted_us`; if preempted, for that of `by`."""

    evicted_us: int
    cause: Cause
    by: QueuePreemptor = QueuePreemptor()
    priority: int | None = None


class QueueEvictions(KeyedPart[EvictedWorkload]):
    """The last eviction of each existing Workload, by UID; none unless they are watched.

    `fresh` are namespaces with a new one.

    Sources: kueue pkg/workload/workload.go (SetEvictedCondition), pkg/controller/jobframework/reconciler.go, which
    stops the job after that; apis/kueue/v1beta2/workload_types.go for the reasons.
    """

    name = "queue_eviction"
    document_limit = Kind.KUEUE_WORKLOADS.limit
    kinds = (Kind.KUEUE_WORKLOADS,)

    def __init__(self, *, is_watched: bool) -> None:
        super().__init__()
        self.is_watched = is_watched
        self.pods = PodWorkloads()
        self.fresh: set[str] = set()
        self._by_name: dict[Name, EvictedWorkload] = {}
        self._limit = NamespaceLimit(self.document_limit, lambda _, uid: self.gone(uid, at_us=0))

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self._limit.overflow

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`. Kueue withdraws the condition as it admits the Workload again; the eviction stays."""
        if not isinstance(found, KueueWorkload):
            return
        if eviction := found.eviction:
            self._put(_eviction_of(found, *eviction, at_us))

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`. The pods of a Workload are gone before."""
        if known := self._remove(uid):
            self._limit.remove(known.namespace, uid)
            for name in known.names:
                if self._by_name.get(name) is known:
                    del self._by_name[name]

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.known.keys() - {*uids}:
            self.gone(uid, at_us=at_us)

    def restore(self, documents: Iterable[EvictedWorkload], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for each in documents:
            self._touched.add(each.uid)
            self._put(no_later(each, at_us, "evicted_us"))
        self._touched -= self.known.keys()
        self.fresh = {each.namespace for each in self.known.values() if each.evicted_us >= at_us - _LATE_US}

    def of_pod(self, record: PodRecord, deleted_us: int) -> Disrupted | None:
        """The eviction for which a pod was deleted, which existed when its Workload was evicted; None without one."""
        if not self.known:
            return None
        names = [record.full_job]
        if record.owner:
            names.insert(0, (record.namespace, "", record.owner.uid))
        found = self._named(record.namespace, record.uid, names)
        if found and record.created_us <= found.evicted_us + OFF_US <= deleted_us + 2 * OFF_US:
            return Disrupted(found.cause, min(found.evicted_us, deleted_us), found.by)
        return None

    def of_deletion(self, each: Victim) -> Disrupted | None:
        """The eviction soon after which a pod, which may be gone, was deleted; None without one."""
        found = self._of(each)
        if found and -OFF_US <= each.decided_us - found.evicted_us <= _LATE_US:
            return Disrupted(found.cause, min(found.evicted_us, each.decided_us), found.by)
        return None

    def priority_of(self, each: Victim) -> int | None:
        """The priority of the workload of a victim that was evicted; None if it is not known."""
        found = self._of(each)
        return found.priority if found else None

    def _of(self, each: Victim) -> EvictedWorkload | None:
        return self._named(each.victim_namespace, each.victim_uid, [(each.victim_namespace, each.job_kind, each.job)])

    def _named(self, namespace: str, uid: str, names: Iterable[Name]) -> EvictedWorkload | None:
        """The Workload that the pod names itself, else the one of its job."""
        if not self.known:
            return None
        if own := self.pods.workload_of.get(uid):
            return self._by_name.get((namespace, WORKLOAD, own))
        return next((found for each in names if (found := self._by_name.get(each))), None)

    def _put(self, new: EvictedWorkload) -> None:
        known = self.known.get(new.uid)
        if known != new and self._limit.put(new.namespace, new.uid):
            self._store(new.uid, new)
            self._by_name |= dict.fromkeys(new.names, new)
            self.fresh.add(new.namespace)


def _eviction_of(found: KueueWorkload, evicted: Condition, cause: Cause, at_us: int) -> EvictedWorkload:
    by = queue_preemptor_in(evicted.message)
    return EvictedWorkload(
        **name_of(found.metadata),
        evicted_us=dated_us(evicted.last_transition_time, at_us),
        cause=cause,
        by=QueuePreemptor() if by.uid == found.metadata.uid else by,
        priority=found.priority,
    )
