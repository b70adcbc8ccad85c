"""Evictions by Kueue, as its Workloads report them: of suspended jobs, no pod says why it was deleted."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msgspec import Struct

from gputally.accounting.groups.declared_groups import first_of
from gputally.accounting.nodes.node_clock import OFF_US
from gputally.accounting.state_part import KeyedPart, StatePart, no_later
from gputally.model.disruptions.disruption import Cause, Disrupted, Disruption
from gputally.model.kube import Condition, Kind, Object, Pod
from gputally.model.objects.kueue_workload import KueueWorkload
from gputally.model.owner import controller_of
from gputally.model.pod import PodRecord
from gputally.model.units import US_PER_SECOND, dated_us

_ANNOTATION: Final = "kueue.x-k8s.io/workload"
_EVICTED: Final = "Evicted"
_PREEMPTED: Final = "Preempted"
_WORKLOAD: Final = "Workload"
_LATE_US: Final = 60 * US_PER_SECOND
"""How long after an eviction pods are deleted because of it, if only their deletion is known."""
_TRAINING: Final = frozenset({"PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob"})
"""The kinds of Kubeflow, whose pods are labelled alike."""

_Name = tuple[str, str, str]
"""Namespace, kind and name."""


class EvictedWorkload(Struct, frozen=True, kw_only=True, gc=False):
    """A Workload that was evicted, last at `evicted_us`, and the job that owns it."""

    uid: str
    namespace: str
    name: str
    owner_kind: str
    owner_name: str
    owner_uid: str
    evicted_us: int
    cause: Cause

    @property
    def names(self) -> Iterator[_Name]:
        """What pods may call it: the Workload, its owner by UID, or its owner by name."""
        yield self.namespace, _WORKLOAD, self.name
        yield self.namespace, "", self.owner_uid
        yield self.namespace, self.owner_kind, self.owner_name
        if self.owner_kind in _TRAINING:
            yield self.namespace, "TrainingJob", self.owner_name


class QueueEvictions(KeyedPart[EvictedWorkload]):
    """The last eviction of each existing Workload, by UID. `fresh` are namespaces with one that was not known before.

    Sources: kueue pkg/workload/workload.go (SetEvictedCondition), pkg/controller/jobframework/reconciler.go, which
    stops the job after that; apis/kueue/v1beta2/workload_types.go for the reasons.
    """

    name = "queue_eviction"
    kinds = (Kind.KUEUE_WORKLOADS,)

    def __init__(self) -> None:
        super().__init__()
        self.pods = PodWorkloads()
        self.fresh: set[str] = set()
        self._by_name: dict[_Name, EvictedWorkload] = {}

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`. Kueue withdraws the condition as it admits the Workload again; the eviction stays."""
        evicted = found.condition(_EVICTED) if isinstance(found, KueueWorkload) else None
        if evicted and evicted.status == "True":
            self._put(_eviction_of(found, evicted, at_us))

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`. The pods of a Workload are gone before."""
        if known := self._remove(uid):
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
            self._put(no_later(each, at_us, "evicted_us"))
        self._touched.clear()
        self.fresh.clear()

    def of_pod(self, record: PodRecord, deleted_us: int) -> Disrupted | None:
        """The eviction for which a pod was deleted, which existed when its Workload was evicted; None without one."""
        names = [(record.namespace, record.job_kind, record.job)]
        if record.owner:
            names.insert(0, (record.namespace, "", record.owner.uid))
        found = self._named(record.namespace, record.uid, names)
        if found and record.created_us <= found.evicted_us + OFF_US <= deleted_us + 2 * OFF_US:
            return Disrupted(found.cause, min(found.evicted_us, deleted_us))
        return None

    def of_deletion(self, each: Disruption) -> Disrupted | None:
        """The same, of a pod that may be gone: it was deleted soon after the eviction."""
        found = self._named(each.victim_namespace, each.victim_uid, [(each.victim_namespace, each.job_kind, each.job)])
        if found and -OFF_US <= each.decided_us - found.evicted_us <= _LATE_US:
            return Disrupted(found.cause, min(found.evicted_us, each.decided_us))
        return None

    def _named(self, namespace: str, uid: str, names: Iterable[_Name]) -> EvictedWorkload | None:
        """The Workload that the pod names itself, else the one of its job."""
        if not self.known:
            return None
        if own := self.pods.workload_of.get(uid):
            return self._by_name.get((namespace, _WORKLOAD, own))
        return next((found for each in names if (found := self._by_name.get(each))), None)

    def _put(self, new: EvictedWorkload) -> None:
        known = self.known.get(new.uid)
        if known != new:
            self._store(new.uid, new)
            self._by_name |= dict.fromkeys(new.names, new)
            self.fresh.add(new.namespace)


class PodWorkloads(StatePart[Struct]):
    """The Workload that a pod names, by the UID of the pod."""

    name = "pod_workload"
    kinds = (Kind.PODS,)

    def __init__(self) -> None:
        self.workload_of: dict[str, str] = {}

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`."""
        if isinstance(found, Pod) and (name := first_of(found.metadata.annotations, (_ANNOTATION,))):
            self.workload_of[found.metadata.uid] = name

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`; comes after its disruption was judged."""
        self.workload_of.pop(uid, None)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.workload_of.keys() - {*uids}:
            self.gone(uid, at_us=at_us)


def _eviction_of(found: Object, evicted: Condition, at_us: int) -> EvictedWorkload:
    meta, time = found.metadata, evicted.last_transition_time
    owner = controller_of(meta.owner_references)
    return EvictedWorkload(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        owner_kind=owner.kind if owner else "",
        owner_name=owner.name if owner else "",
        owner_uid=owner.uid if owner else "",
        evicted_us=dated_us(time, at_us),
        cause=Cause.QUEUE_PREEMPTION if evicted.reason == _PREEMPTED else Cause.QUEUE_EVICTION,
    )
