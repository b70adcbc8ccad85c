"""Matches preempted pods with their preemptors, and counts each preemption once.

A preemption is a victim with the condition DisruptionTarget for preemption AND a deletion: the condition alone may be
withdrawn, and an Event alone may name a pod that was never bound. The Event names the preemptor. It may arrive before
or after, or get lost: then it was the pod nominated to that node, if there is only one, else the preemption is counted
as by `unknown` after a while.

If a queue says that it evicted the victim's workload for another one, it names that in the same message.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.limits import LimitOverflow
from gputally.accounting.base.state_part import KeyedPart, no_later
from gputally.accounting.disruptions.kueue_preemptors import QueuePreemptors, by_queue
from gputally.accounting.disruptions.preemptors import (
    GroupPreemptors,
    Nomination,
    Nominations,
    PreemptedEvents,
    expect_possible,
    group_named,
    preemptor_in,
    preemptor_of,
)
from gputally.accounting.facts.allocation import held
from gputally.accounting.facts.outcome import target_of
from gputally.accounting.pods.pods import Pods
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals
from gputally.frameworks.groups import POD_GROUP
from gputally.model.disruptions import Disruption, Preemption, Preemptor
from gputally.model.kube.events import Event
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.pods import Pod
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_HOUR, US_PER_SECOND, to_us

UNKNOWN: Final = "unknown"
_PATIENCE_US = 60 * US_PER_SECOND
"""How long to wait for an Event; the scheduler sends it right after the deletion."""
_KEEP_US = US_PER_HOUR
"""How long counted preemptions and unmatched Events are kept; the API server keeps Events for the same time."""

Tiers = tuple[str, str]
"""Exported tiers of victim and preemptor."""
_TIMES = ("decided_us", "requested_us", "released_us", "noticed_us")


class Preemptions(KeyedPart[Preemption]):
    """All preemptions of the last hour and of existing pods, by victim UID."""

    name = "preemption"
    kinds = (Kind.EVENTS, Kind.PODS)

    def __init__(self, totals: Totals, pods: Pods, limiter: LabelLimiter, *, workloads: QueuePreemptors) -> None:
        super().__init__()
        self.known_pods = ()
        self.counted: dict[str, Preemption | None] = {}
        self.events = PreemptedEvents()
        self._nominations = Nominations()
        self._groups = GroupPreemptors()
        self._open: set[str] = set()
        self._unreleased: set[str] = set()
        self._totals = totals
        self._pods = pods
        self._limit = limiter.limit
        self._workloads = workloads
        self.by_queue: dict[str, dict[str, None]] = {}
        """Victims whose preemptor is a workload that is named, by node."""

    def restore(self, documents: Iterable[Preemption], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for preemption in documents:
            self.known[preemption.victim_uid] = no_later(preemption, at_us, *_TIMES)
            is_inferred = preemption.preemptor is not None and preemption.preemptor.is_inferred
            if preemption.counted is None or preemption.counted[1] == UNKNOWN or is_inferred:
                self._open.add(preemption.victim_uid)
            if preemption.released_us is None:
                self._unreleased.add(preemption.victim_uid)
            self._follow(preemption)

    @property
    def unreleased(self) -> Iterator[Preemption]:
        """Preemptions whose victims still have their GPUs."""
        return (self.known[uid] for uid in self._unreleased)

    def drain_counted(self) -> dict[str, Preemption | None]:
        """Preemptions that were counted, or recounted, since the last call, by victim; None for withdrawn ones."""
        counted, self.counted = self.counted, {}
        return counted

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        super().touch_all()
        self.counted |= {uid: each for uid, each in self.known.items() if each.counted}

    def pod_changed(self, record: PodRecord, *, at_us: int, is_gone: bool = False) -> None:
        """Update from a pod with the condition or a deletion request, or that `is_gone`; its end does not matter."""
        deleted = is_gone or record.deletion_us is not None
        if record.preempted_us is None or not deleted or record.scheduled_us is None or not record.terms:
            return
        known = self.known.get(record.uid)
        if known is None:
            self._open.add(record.uid)
        terms = record.terms[-1]
        preemption = Preemption(
            victim_uid=record.uid,
            victim_namespace=record.namespace,
            victim_name=record.name,
            victim_priority=record.priority or 0,
            victim_class=record.class_name,
            victim_tier=terms.tier,
            victim_tenant=terms.tenant,
            node=record.node,
            quantity=known.quantity if known else sum(quantity for _, quantity in held(record, terms)),
            decided_us=record.preempted_us,
            requested_us=record.deletion_us,
            released_us=record.end_us,
            noticed_us=known.noticed_us if known else at_us,
            preemptor=known.preemptor if known else None,
            preemptor_pods=known.preemptor_pods if known else (),
            counted=known.counted if known else None,
            forbidden=known.forbidden if known else None,
        )
        self._keep(preemption)
        self._resolve(record.uid, at_us=at_us)

    def queue_preempted(self, each: Disruption, *, priority: int | None, at_us: int) -> None:
        """Update from a victim whose queue made room for another workload.

        `priority` is that of its own workload, None if it is not known.
        """
        known = self.known.get(each.victim_uid)
        if known is None:
            self._open.add(each.victim_uid)
        self._keep(by_queue(each, known, priority=priority, at_us=at_us))
        self._resolve(each.victim_uid, at_us=at_us)
        self._bound_before(each.node)

    def withdraw(self, victim_uid: str, *, at_us: int) -> None:
        """The victim of a queue was none: it had ended by itself."""
        known = self.known.get(victim_uid)
        if known is None or known.queue_rule is None:
            return
        if known.counted:
            self._recount(Total.PREEMPTIONS, known.counted, None, at_us=at_us)
            self._recount(Total.PREEMPTED, known.counted, None, amount=known.quantity, at_us=at_us)
            victim = (known.counted[0], self._limit("tenant", known.victim_tenant))
            self._totals.count(Total.TENANT_PREEMPTIONS, victim, -1, at_us=at_us)
            self.counted[victim_uid] = None
        self._forget(known)

    def bound(self, record: PodRecord) -> None:
        """A pod was bound, or has changed; it may be one of a workload that preempted pods on its node."""
        for victim_uid in self.by_queue.get(record.node, ()):
            known = self.known[victim_uid]
            is_new = record.scheduled_us is not None and record.uid not in known.preemptor_pods
            if is_new and known.preemptor and self._has_created(known, known.preemptor, record):
                pods = (*known.preemptor_pods, record.uid)
                by = known.preemptor if known.preemptor.tier else self._by_pod(known.preemptor, record)
                self._keep(replace(known, preemptor=by, preemptor_pods=pods))

    def _bound_before(self, node: str) -> None:
        """Who preempted pods of the node may become known after its own pods were bound there."""
        for record in self._pods.on_node(node):
            self.bound(record)

    def _has_created(self, known: Preemption, by: Preemptor, record: PodRecord) -> bool:
        """Whether a pod is one of the workload of a queue, or of the group, that preempted the victim."""
        if known.queue_rule is None:
            return self._groups.has_created(by, record)
        return self._workloads.has_created(by, record)

    def _by_pod(self, workload: Preemptor, record: PodRecord) -> Preemptor:
        """What a pod says of a preemptor whose Workload is not known; the next `advance` counts it."""
        pod = self._pods.as_preemptor(record.uid)
        if pod is None or self._workloads.get(workload.uid):
            return workload
        if workload.kind == POD_GROUP:
            return replace(workload, tier=pod.tier, tenant=pod.tenant, class_name=pod.class_name)
        job = {"namespace": record.namespace, "kind": record.job_kind, "name": record.job}
        return replace(workload, tier=pod.tier, tenant=pod.tenant, quantity=None, **job)

    def is_preemptor(self, victim_uid: str, pod_uid: str) -> bool:
        """Whether a pod preempted the victim, or is one of the workload that did."""
        known = self.known.get(victim_uid)
        if known is None or known.preemptor is None:
            return False
        return known.preemptor.uid == pod_uid or pod_uid in known.preemptor_pods

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self.events.limit_overflow

    def seen(self, found: Object, *, at_us: int) -> None:
        """Store the preemptor of an Event `Preempted`, pods that are nominated to a node, and groups that wait.

        KAI-Scheduler sends no Event for its victims, but names the preemptor in their conditions. Whoever may create
        Events in a namespace can forge those of its pods. Raises: MalformedObject, without any change, if it names pods
        that cannot exist.
        """
        if isinstance(found, Pod):
            self._pod_seen(found, at_us)
        elif isinstance(found, Event):
            self._event_seen(found, at_us)

    def _pod_seen(self, found: Pod, at_us: int) -> None:
        if node := found.status.nominated_node_name:
            nominee = self._pods.nominee(found, at_us)
            self._nominations.add(Nomination(node, at_us, found.spec.priority or 0, nominee))
        if not found.spec.node_name and (group := group_named(found)):
            self._groups.seen(found.metadata.namespace, group, self._pods.nominee(found, at_us))
        if (target := target_of(found)) and (preemptor := preemptor_in(target)):
            self.events.add(found.metadata.namespace, found.metadata.uid, preemptor, at_us=at_us)
            self._resolve(found.metadata.uid, at_us=at_us)

    def _event_seen(self, found: Event, at_us: int) -> None:
        victim, preemptor = found.involved_object, preemptor_of(found)
        if found.reason == "Preempted" and victim.kind == "Pod" and victim.uid and preemptor:
            expect_possible(found)
            sent_us = to_us(found.event_time) if found.event_time else 0
            self.events.add(found.metadata.namespace, victim.uid, preemptor, at_us=at_us, sent_us=sent_us)
            self._reopen(victim.uid, at_us=at_us)
            self._resolve(victim.uid, at_us=at_us)

    def _reopen(self, victim_uid: str, *, at_us: int) -> None:
        """Two pods may choose the same victim, and the Event that was sent first may be observed last."""
        preemption = self.known.get(victim_uid)
        if preemption and preemption.preemptor and at_us - preemption.noticed_us < _PATIENCE_US:
            first = self.events.by(preemption.victim_namespace, victim_uid)
            if first and first.uid != preemption.preemptor.uid:
                self._open.add(victim_uid)

    def advance(self, now_us: int) -> None:
        """Count victims whose Event is overdue, and drop those older than an hour, except for existing pods."""
        for uid in tuple(self._open):
            self._resolve(uid, at_us=now_us)
        for uid, preemption in tuple(self.known.items()):
            if preemption.noticed_us < now_us - _KEEP_US and self._pods.as_preemptor(uid) is None:
                self._forget(preemption)
        self.events.forget(before_us=now_us - _KEEP_US)
        self._nominations.forget(before_us=now_us - _KEEP_US)

    def _resolve(self, victim_uid: str, *, at_us: int) -> None:
        known = self.known.get(victim_uid)
        if known is None or victim_uid not in self._open:
            return
        is_overdue = at_us - known.noticed_us >= _PATIENCE_US
        preemptor = self._preemptor_of(known, is_overdue=is_overdue)
        preemption = replace(known, preemptor=preemptor)
        if preemptor and preemptor.tier:
            if not preemptor.is_inferred:
                self._open.discard(victim_uid)
            self._count(preemption, self._limit("tier", preemptor.tier), at_us=at_us)
        elif is_overdue or preemption.counted:  # counted by another one, before this one was named
            self._count(preemption, UNKNOWN, at_us=at_us)
        else:
            self._keep(preemption)
        if preemptor and preemptor.kind == POD_GROUP and preemptor != known.preemptor:
            self._bound_before(known.node)

    def _preemptor_of(self, preemption: Preemption, *, is_overdue: bool) -> Preemptor | None:
        """The preemptor by its queue or by the Event; once that is overdue, the only pod that can have been it."""
        known = preemption.preemptor
        if preemption.queue_rule is not None:
            return (self._workloads.get(known.uid) or known) if known else None
        named = self.events.by(preemption.victim_namespace, preemption.victim_uid) or known
        if named and named.kind:
            group = self._groups.get(named)
            return known if known and not group.tier and _is_same(known, named) else group
        if named and not named.is_inferred:
            return self._pods.as_preemptor(named.uid) or self._nominations.get(named.uid) or named
        if named or not is_overdue:
            return named
        decided_us, above = preemption.decided_us, preemption.victim_priority or 0
        only = self._nominations.only_one(preemption.node, decided_us=decided_us, above=above)
        return replace(only, is_inferred=True) if only else None

    def _count(self, preemption: Preemption, tier: str, *, at_us: int) -> None:
        """Count by the preemptor's tier; withdraw an earlier count as unknown."""
        labels = (self._limit("tier", preemption.victim_tier), tier)
        forbidden = None if preemption.is_permitted else labels
        self._recount(Total.PREEMPTIONS, preemption.counted, labels, at_us=at_us)
        self._recount(Total.PREEMPTED, preemption.counted, labels, amount=preemption.quantity, at_us=at_us)
        self._recount(Total.FORBIDDEN, preemption.forbidden, forbidden, at_us=at_us)
        if preemption.counted is None:
            victim = (labels[0], self._limit("tenant", preemption.victim_tenant))
            self._totals.count(Total.TENANT_PREEMPTIONS, victim, 1, at_us=at_us)
        self._keep(replace(preemption, counted=labels, forbidden=forbidden))

    def _recount(self, total: Total, before: Tiers | None, after: Tiers | None, *, at_us: int, amount: int = 1) -> None:
        for labels, sign in ((before, -1), (after, 1)):
            if labels and before != after:
                self._totals.count(total, labels, sign * amount, at_us=at_us)

    def _keep(self, preemption: Preemption) -> None:
        if self.known.get(preemption.victim_uid) == preemption:
            return
        self._store(preemption.victim_uid, preemption)
        self._follow(preemption)
        if preemption.released_us is None:
            self._unreleased.add(preemption.victim_uid)
        else:
            self._unreleased.discard(preemption.victim_uid)
        if preemption.counted:
            self.counted[preemption.victim_uid] = preemption

    def _follow(self, preemption: Preemption) -> None:
        if preemption.preemptor and (preemption.queue_rule is not None or preemption.preemptor.kind):
            self.by_queue.setdefault(preemption.node, {})[preemption.victim_uid] = None

    def _forget(self, preemption: Preemption) -> None:
        uid = preemption.victim_uid
        self._remove(uid)
        self._open.discard(uid)
        self._unreleased.discard(uid)
        if (on_node := self.by_queue.get(preemption.node)) and uid in on_node:
            del on_node[uid]
            if not on_node:
                del self.by_queue[preemption.node]


def _is_same(known: Preemptor, named: Preemptor) -> bool:
    """Whether an Event or KAI names the group that is known, perhaps by its pods."""
    return (known.kind, known.uid, known.namespace, known.name) == (named.kind, named.uid, named.namespace, named.name)


class Preempting(Struct, frozen=True, kw_only=True):
    """Victims of one pair of tiers; `quantity` in µGPU, `oldest_us` is the first deletion request (µs)."""

    pods: int
    quantity: int
    oldest_us: int


def preempting(unreleased: Iterable[Preemption], shown: Callable[[str], str]) -> dict[Tiers, Preempting]:
    """The victims that have not released their GPUs yet, by exported tiers of victim and preemptor.

    `shown` returns how a tier is exported. The preemptor of a preemption that is not counted yet is unknown.
    """
    found: dict[Tiers, Preempting] = {}
    for each in unreleased:
        tiers = each.counted or (shown(each.victim_tier), UNKNOWN)
        since_us = each.decided_us if each.requested_us is None else each.requested_us
        before = found.get(tiers, Preempting(pods=0, quantity=0, oldest_us=since_us))
        found[tiers] = Preempting(
            pods=before.pods + 1,
            quantity=before.quantity + each.quantity,
            oldest_us=min(before.oldest_us, since_us),
        )
    return found
