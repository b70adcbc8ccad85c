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
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.disruptions.kueue_preemptors import QueuePreemptors, first_known
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
from gputally.accounting.disruptions.victims import Victims, only_preempted
from gputally.accounting.facts.outcome import target_of
from gputally.accounting.pods.pods import Pods
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals
from gputally.frameworks.groups import POD_GROUP
from gputally.model.disruptions import CountedPreemption, Preemptor, Victim
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
"""How long unmatched Events are kept; the API server keeps them for the same time."""

Tiers = tuple[str, str]
"""Exported tiers of victim and preemptor."""


class Preemptions(StatePart[Struct]):
    """For whom the `victims` were preempted, if they were."""

    name = "preemption"
    kinds = (Kind.EVENTS, Kind.PODS)

    def __init__(self, totals: Totals, pods: Pods, limiter: LabelLimiter, *, workloads: QueuePreemptors) -> None:
        self.known_pods = ()
        self.events = PreemptedEvents()
        self.victims = Victims()
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

    def restore(self, documents: Iterable[Struct], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.restore`; its victims were restored before."""
        for victim, by in self._preempted():
            if not by.counted or by.preemptor_tier == UNKNOWN or (by.preemptor and by.preemptor.is_inferred):
                self._open.add(victim.victim_uid)
            self._follow(victim, by)

    @property
    def known(self) -> dict[str, Victim]:
        """The victims that were preempted, by UID."""
        return {victim.victim_uid: victim for victim, _ in self._preempted()}

    @property
    def unreleased(self) -> Iterator[Victim]:
        """Preempted victims that still have their GPUs."""
        return (self.victims.known[uid] for uid in self._unreleased)

    def _preempted(self) -> Iterator[tuple[Victim, CountedPreemption]]:
        return ((victim, victim.by) for victim in self.victims.known.values() if victim.by)

    def _get(self, victim_uid: str) -> tuple[Victim, CountedPreemption] | None:
        victim = self.victims.known.get(victim_uid)
        return (victim, victim.by) if victim and victim.by else None

    def pod_changed(self, record: PodRecord, *, at_us: int, is_gone: bool = False) -> None:
        """Update from a pod with the condition or a deletion request, or that `is_gone`; its end does not matter.

        As a disruption, if it is one, it is up to date.
        """
        deleted = is_gone or record.deletion_us is not None
        if record.preempted_us is None or not deleted or record.scheduled_us is None or not record.terms:
            return
        known = self.victims.known.get(record.uid)
        by = known.by if known and known.by else self._begun(record.uid, at_us)
        by = replace(by, victim_priority=record.priority or 0, victim_class=record.class_name, queue_rule=None)
        if known is None or not known.is_disruption:
            known = only_preempted(record, before=known, at_us=at_us)
        self._keep(known, by)
        self._resolve(record.uid, at_us=at_us)

    def queue_preempted(self, victim: Victim, *, priority: int | None, at_us: int) -> None:
        """Update from a victim whose queue made room for another workload.

        `priority` is that of its own workload, None if it is not known.
        """
        by = victim.by or replace(self._begun(victim.victim_uid, at_us), preemptor=first_known(victim.named))
        known = by.victim_priority
        by = replace(by, victim_priority=priority if known is None else known, queue_rule=victim.named.rule)
        self._keep(victim, replace(by, victim_class=""))
        self._resolve(victim.victim_uid, at_us=at_us)
        self._bound_before(victim.node)

    def _begun(self, victim_uid: str, at_us: int) -> CountedPreemption:
        """A preemption by a preemptor that is to be found."""
        self._open.add(victim_uid)
        return CountedPreemption(noticed_us=at_us)

    def withdraw(self, victim: Victim, *, at_us: int) -> None:
        """The victim of a queue was none: it had ended by itself."""
        if victim.by and (counted := victim.by.counted):
            self._recount(Total.PREEMPTIONS, counted, None, at_us=at_us)
            self._recount(Total.PREEMPTED, counted, None, amount=victim.quantity, at_us=at_us)
            labels = (counted[0], self._limit("tenant", victim.victim_tenant))
            self._totals.count(Total.TENANT_PREEMPTIONS, labels, -1, at_us=at_us)
        self.forget(victim)

    def bound(self, record: PodRecord) -> None:
        """A pod was bound, or has changed; it may be one of a workload that preempted pods on its node."""
        for victim_uid in self.by_queue.get(record.node, ()):
            known = self._get(victim_uid)
            if known is None or record.scheduled_us is None or record.uid in known[1].preemptor_pods:
                continue
            victim, by = known
            if by.preemptor and self._has_created(by, by.preemptor, record):
                preemptor = by.preemptor if by.preemptor.tier else self._by_pod(by.preemptor, record)
                pods = (*by.preemptor_pods, record.uid)
                self._keep(victim, replace(by, preemptor=preemptor, preemptor_pods=pods))

    def _bound_before(self, node: str) -> None:
        """Who preempted pods of the node may become known after its own pods were bound there."""
        for record in self._pods.on_node(node):
            self.bound(record)

    def _has_created(self, by: CountedPreemption, preemptor: Preemptor, record: PodRecord) -> bool:
        """Whether a pod is one of the workload of a queue, or of the group, that preempted the victim."""
        if by.queue_rule is None:
            return self._groups.has_created(preemptor, record)
        return self._workloads.has_created(preemptor, record)

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
        known = self.victims.known.get(victim_uid)
        if known is None or known.by is None or known.by.preemptor is None:
            return False
        return known.by.preemptor.uid == pod_uid or pod_uid in known.by.preemptor_pods

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
        if (known := self._get(victim_uid)) is None:
            return
        victim, by = known
        if by.preemptor and at_us - by.noticed_us < _PATIENCE_US:
            first = self.events.by(victim.victim_namespace, victim_uid)
            if first and first.uid != by.preemptor.uid:
                self._open.add(victim_uid)

    def advance(self, now_us: int) -> None:
        """Count victims whose Event is overdue, and drop Events older than an hour."""
        for uid in tuple(self._open):
            self._resolve(uid, at_us=now_us)
        self.events.forget(before_us=now_us - _KEEP_US)
        self._nominations.forget(before_us=now_us - _KEEP_US)

    def _resolve(self, victim_uid: str, *, at_us: int) -> None:
        known = self._get(victim_uid)
        if known is None or victim_uid not in self._open:
            return
        victim, by = known
        is_overdue = at_us - by.noticed_us >= _PATIENCE_US
        preemptor = self._preemptor_of(victim, by, is_overdue=is_overdue)
        found = replace(by, preemptor=preemptor)
        if preemptor and preemptor.tier:
            if not preemptor.is_inferred:
                self._open.discard(victim_uid)
            self._count(victim, found, self._limit("tier", preemptor.tier), at_us=at_us)
        elif is_overdue or by.counted:  # counted by another one, before this one was named
            self._count(victim, found, UNKNOWN, at_us=at_us)
        else:
            self._keep(victim, found)
        if preemptor and preemptor.kind == POD_GROUP and preemptor != by.preemptor:
            self._bound_before(victim.node)

    def _preemptor_of(self, victim: Victim, by: CountedPreemption, *, is_overdue: bool) -> Preemptor | None:
        """The preemptor by its queue or by the Event; once that is overdue, the only pod that can have been it."""
        known = by.preemptor
        if by.queue_rule is not None:
            return (self._workloads.get(known.uid) or known) if known else None
        named = self.events.by(victim.victim_namespace, victim.victim_uid) or known
        if named and named.kind:
            group = self._groups.get(named)
            return known if known and not group.tier and _is_same(known, named) else group
        if named and not named.is_inferred:
            return self._pods.as_preemptor(named.uid) or self._nominations.get(named.uid) or named
        if named or not is_overdue:
            return named
        above = by.victim_priority or 0
        only = self._nominations.only_one(victim.node, decided_us=victim.decided_us, above=above)
        return replace(only, is_inferred=True) if only else None

    def _count(self, victim: Victim, by: CountedPreemption, tier: str, *, at_us: int) -> None:
        """Count by the preemptor's tier; withdraw an earlier count as unknown."""
        before, labels = by.counted, (self._limit("tier", victim.victim_tier), tier)
        is_forbidden = by.is_permitted is False
        forbidden = (before if by.is_forbidden else None, labels if is_forbidden else None)
        self._recount(Total.PREEMPTIONS, before, labels, at_us=at_us)
        self._recount(Total.PREEMPTED, before, labels, amount=victim.quantity, at_us=at_us)
        self._recount(Total.FORBIDDEN, *forbidden, at_us=at_us)
        if before is None:
            tenant = self._limit("tenant", victim.victim_tenant)
            self._totals.count(Total.TENANT_PREEMPTIONS, (labels[0], tenant), 1, at_us=at_us)
        self._keep(victim, replace(by, counted_tier=labels[0], preemptor_tier=tier, is_forbidden=is_forbidden))

    def _recount(self, total: Total, before: Tiers | None, after: Tiers | None, *, at_us: int, amount: int = 1) -> None:
        for labels, sign in ((before, -1), (after, 1)):
            if labels and before != after:
                self._totals.count(total, labels, sign * amount, at_us=at_us)

    def _keep(self, victim: Victim, by: CountedPreemption) -> None:
        victim = victim if victim.by == by else replace(victim, by=by)
        if self.victims.known.get(victim.victim_uid) != victim:
            self.victims.keep(victim)
        self._follow(victim, by)

    def _follow(self, victim: Victim, by: CountedPreemption) -> None:
        if victim.released_us is None:
            self._unreleased.add(victim.victim_uid)
        else:
            self._unreleased.discard(victim.victim_uid)
        if by.preemptor and by.is_for_workload:
            self.by_queue.setdefault(victim.node, {})[victim.victim_uid] = None

    def forget(self, victim: Victim) -> None:
        """Wait no longer for a preemptor or its pods."""
        uid = victim.victim_uid
        self._open.discard(uid)
        self._unreleased.discard(uid)
        if (on_node := self.by_queue.get(victim.node)) and uid in on_node:
            del on_node[uid]
            if not on_node:
                del self.by_queue[victim.node]


def _is_same(known: Preemptor, named: Preemptor) -> bool:
    """Whether an Event or KAI names the group that is known, perhaps by its pods."""
    return (known.kind, known.uid, known.namespace, known.name) == (named.kind, named.uid, named.namespace, named.name)


class Preempting(Struct, frozen=True, kw_only=True):
    """Victims of one pair of tiers; `quantity` in µGPU, `oldest_us` is the first deletion request (µs)."""

    pods: int
    quantity: int
    oldest_us: int


def preempting(unreleased: Iterable[Victim], shown: Callable[[str], str]) -> dict[Tiers, Preempting]:
    """The victims that have not released their GPUs yet, by exported tiers of victim and preemptor.

    `shown` returns how a tier is exported. The preemptor of a preemption that is not counted yet is unknown.
    """
    found: dict[Tiers, Preempting] = {}
    for each in unreleased:
        tiers = (each.by and each.by.counted) or (shown(each.victim_tier), UNKNOWN)
        since_us = each.decided_us if each.requested_us is None else each.requested_us
        before = found.get(tiers, Preempting(pods=0, quantity=0, oldest_us=since_us))
        found[tiers] = Preempting(
            pods=before.pods + 1,
            quantity=before.quantity + each.quantity,
            oldest_us=min(before.oldest_us, since_us),
        )
    return found
