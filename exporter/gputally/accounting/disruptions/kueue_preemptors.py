"""Workloads of Kueue for which it preempts others: those that wait, and those that did until lately."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from gputally.accounting.base.limits import LimitOverflow
from gputally.accounting.base.state_part import KeyedPart, no_later
from gputally.accounting.disruptions.kueue_workload_names import PodWorkloads, WorkloadName, name_of
from gputally.accounting.terms.tenant import relevant_labels
from gputally.accounting.terms.tier import tier_labels
from gputally.errors import MalformedObject
from gputally.frameworks.kueue import CLASS_LABEL, WORKLOAD, KueueWorkload, PodSet
from gputally.model.disruptions import Preemptor, QueuePreemptor
from gputally.model.kube.kinds import Kind, Limit
from gputally.model.kube.meta import Labels, Object
from gputally.model.kube.pods import Pod
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.units import US_PER_HOUR, dated_us
from gputally.shares.request import effective_units
from gputally.shares.schemes import covered

_KEEP_US: Final = US_PER_HOUR
"""How long one is kept that waits no longer: its victims are observed, and its pods bound, within minutes."""
_MOST_SETS: Final = 16
"""Pod sets that are read; the API allows 8, or 10 in later versions."""
_MOST_QUANTITY: Final = 2**62
_MOST_NAME: Final = 253
_MOST_LABEL: Final = 63
"""Limits of the API for pods, which it does not check in the templates of a Workload."""

TierOf = Callable[[str, tuple[tuple[str, str], ...]], str]
"""The present tier of a PriorityClass, "" for pods that name none, and of these labels."""


class PossiblePreemptor(WorkloadName, frozen=True, kw_only=True, gc=False):
    """A Workload whose pods request `quantity` µGPU; since `left_us` it waits no longer, None if it waits.

    Class and labels are those of the first pods with GPUs, else of the first ones; where these have none, of the
    Workload. `priority` is that in queues, None if it is not known.
    """

    class_name: str
    labels: tuple[tuple[str, str], ...]
    quantity: int
    left_us: int | None
    priority: int | None = None


class QueuePreemptors(KeyedPart[PossiblePreemptor]):
    """Workloads by UID, as preemptors with their present tier and tenant."""

    name = "possible_preemptor"
    document_limit = Limit(None, 20_000)
    """Beyond it, the namespace with most Workloads loses its oldest."""
    kinds = (Kind.KUEUE_WORKLOADS,)

    def __init__(self, rules: Rules, pods: PodWorkloads, tier_of: TierOf, tenant_in: Callable[..., str]) -> None:
        super().__init__()
        self._rules = rules
        self._pods = pods
        self._tier_of = tier_of
        self._tenant_in = tenant_in
        self._in_namespace: dict[str, dict[str, None]] = {}
        """UIDs by namespace, the oldest first."""
        self._left: dict[str, int] = {}
        self._overflow = LimitOverflow()

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self._overflow

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        if isinstance(found, KueueWorkload):
            left_us = _left_us(found, at_us)
            if left_us is None or left_us >= at_us - _KEEP_US:
                self._put(self._possible(found, left_us))
            else:
                self._drop(found.metadata.uid)

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`; its victims may be observed later."""
        known = self.known.get(uid)
        if known and known.left_us is None:
            self._put(replace(known, left_us=at_us))

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.known.keys() - {*uids}:
            self.gone(uid, at_us=at_us)

    def advance(self, now_us: int) -> None:
        """Forget those that wait no longer, about in the order in which they left."""
        while self._left and next(iter(self._left.values())) < now_us - _KEEP_US:
            self._drop(next(iter(self._left)))

    def restore(self, documents: Iterable[PossiblePreemptor], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for each in documents:
            self._put(no_later(each, at_us, "left_us"))
        self._touched -= self.known.keys()

    def get(self, uid: str) -> Preemptor | None:
        """The Workload as a preemptor; None if it is not known."""
        known = self.known.get(uid)
        if known is None:
            return None
        return Preemptor(
            uid=uid,
            namespace=known.namespace,
            name=known.owner_name or known.name,
            tier=self._tier_of(known.class_name, known.labels),
            tenant=self._tenant_in(known.namespace, known.labels),
            class_name=known.class_name,
            kind=known.owner_kind or WORKLOAD,
            priority=known.priority,
            quantity=known.quantity,
        )

    def has_created(self, by: Preemptor, record: PodRecord) -> bool:
        """Whether a pod is one of the Workload; of one that is not known, whether its job controls the pod."""
        if known := self.known.get(by.uid):
            return self._pods.is_of(known, record)
        return bool(by.job_uid) and record.owner is not None and record.owner.uid == by.job_uid

    def _possible(self, found: KueueWorkload, left_us: int | None) -> PossiblePreemptor:
        sets = [(each, _quantity(each, self._rules)) for each in (found.spec.pod_sets or ())[:_MOST_SETS]]
        first = next((each for each, quantity in sets if quantity), sets[0][0] if sets else PodSet()).template
        return PossiblePreemptor(
            **name_of(found.metadata),
            class_name=(first.spec.priority_class_name or found.pod_class)[:_MOST_NAME],
            labels=tuple(sorted(_read_by_rules(_with_class(first.metadata.labels or {}, found), self._rules))),
            quantity=min(sum(quantity for _, quantity in sets), _MOST_QUANTITY),
            left_us=left_us,
            priority=found.priority,
        )

    def _put(self, new: PossiblePreemptor) -> None:
        if self.known.get(new.uid) == new:
            return
        self._left.pop(new.uid, None)
        if new.left_us is not None:
            self._left[new.uid] = new.left_us
        self._store(new.uid, new)
        self._in_namespace.setdefault(new.namespace, {})[new.uid] = None
        if len(self.known) > self.document_limit.most:
            fullest = max(self._in_namespace, key=lambda each: len(self._in_namespace[each]))
            self._drop(next(iter(self._in_namespace[fullest])))
            self._overflow = self._overflow.plus_one(fullest)

    def _drop(self, uid: str) -> None:
        self._left.pop(uid, None)
        if known := self._remove(uid):
            others = self._in_namespace[known.namespace]
            del others[uid]
            if not others:
                del self._in_namespace[known.namespace]


def _left_us(found: KueueWorkload, at_us: int) -> int | None:
    """Since when it waits no longer: it was admitted or is over."""
    return max((dated_us(each.last_transition_time, at_us) for each in found.ends_of_wait), default=None)


def _quantity(each: PodSet, rules: Rules) -> int:
    """What the pods request (µGPU); 0 for a template that cannot be read, as no pod comes of it."""
    try:
        units = effective_units(Pod(metadata=each.template.metadata, spec=each.template.spec), rules)
    except MalformedObject:
        return 0
    return covered(units, (), rules) * max(0, each.count)


def _with_class(labels: Labels, found: KueueWorkload) -> Labels:
    """The labels of pods, with the WorkloadPriorityClass that their job may have as a label instead."""
    return {CLASS_LABEL: found.workload_class, **labels} if found.workload_class else labels


def _read_by_rules(labels: Labels, rules: Rules) -> Iterator[tuple[str, str]]:
    keys = tier_labels(rules) | relevant_labels(rules)
    return ((key, labels[key][:_MOST_LABEL]) for key in keys & labels.keys())


def first_known(named: QueuePreemptor) -> Preemptor | None:
    """The preemptor that a queue names: at first, by UIDs alone."""
    return Preemptor(uid=named.uid, namespace="", name="", job_uid=named.job_uid) if named.uid else None
