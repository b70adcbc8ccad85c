"""Pods that request GPUs: events are merged at once; `reconcile` classifies, segments and posts them to the totals."""

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.compact import shared
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.facts import lifetime
from gputally.accounting.facts.allocation import counts_equally, has_same_revision, segments_of
from gputally.accounting.facts.node_history import History, Reclassified
from gputally.accounting.facts.release import Unaccepted, lapsed_us, released
from gputally.accounting.groups.gang_states import GangStates
from gputally.accounting.nodes.facts import is_stand_in
from gputally.accounting.nodes.nodes import Nodes
from gputally.accounting.pods.deleted import KEEP_US, RecentlyDeleted
from gputally.accounting.pods.index import PodIndex
from gputally.accounting.pods.posting import Handover, Posting, next_revision, update_nodes
from gputally.accounting.prices.pricing import Pricing
from gputally.accounting.terms.classify import (
    kept_labels,
    placed,
    preemptor_from,
    relimited,
    with_present_terms,
)
from gputally.accounting.terms.job import OwnerWalks
from gputally.accounting.terms.tenant import Namespaces
from gputally.accounting.totals.label_limiter import OTHER, LabelLimiter
from gputally.model.allocation import Gap
from gputally.model.disruptions import Preemptor
from gputally.model.history import alike
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Namespace, Object
from gputally.model.kube.pods import Pod
from gputally.model.observation import OwnerResolved
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.shares.request import effective_units


class Provisional:
    """Pods by UID: restored from a process with possibly other rules, or guessed while the namespace is unknown."""

    def __init__(self) -> None:
        self._guessed: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._guessed)

    def take_up(self, uid: str) -> None:
        """An earlier process classified the pod; a new classification applies from now on."""
        self._guessed[uid] = False

    def guess(self, uid: str) -> None:
        """The classification is a guess; the one from the namespace will apply from the start."""
        self._guessed[uid] = True

    def end(self, uid: str) -> bool:
        """The pod is finally classified, or deleted. Returns whether its classification was a guess."""
        return self._guessed.pop(uid, False)

    def suits(self, record: PodRecord, tenant: str) -> bool:
        """Whether the pod's classification is final and holds for `tenant`; other inputs change by pod events only."""
        if record.uid in self._guessed:
            return False
        return record.scheduled_us is None or (bool(record.terms) and record.terms[-1].tenant == tenant)


class Pods:
    """Pod records by UID."""

    def __init__(self, rules: Rules, pricing: Pricing, posting: Posting, limiter: LabelLimiter, nodes: Nodes) -> None:
        self.records: dict[str, PodRecord] = {}
        self.index = PodIndex(rules)
        self.walks = OwnerWalks()
        self.gangs = GangStates(self.records, lambda record: posting.jobs.policy_of(record) is not None, rules)
        self._rules = rules
        self._pricing = pricing
        self._nodes = nodes
        self._limit = limiter.limit_pod
        self._posting = posting
        self.namespaces = Namespaces(rules)
        self.unaccepted = Unaccepted()
        self.provisional = Provisional()
        self._recently_deleted = RecentlyDeleted()
        self._awaiting_node: dict[str, int] = {}  # deletion times of pods whose node is not known yet
        self._unaccounted: dict[str, tuple[PodRecord | None, int]] = {}  # as last accounted; time of the last event
        self.handover = Handover()

    def known(self) -> set[str]:
        """UIDs of the pods that are known to exist."""
        return self.records.keys() - self._awaiting_node.keys()

    def seen(self, pod: Pod, *, at_us: int, since_us: int) -> None:
        """Merge a pod's current state, unless it requests no GPU or is already deleted."""
        if record := self._known_or_new(pod, at_us):
            newest = self._with_newest(record, pod, at_us)
            self._merge(lifetime.seen(newest, pod, at_us=at_us, since_us=since_us), at_us=at_us)

    def gone(self, pod: Pod, *, at_us: int, since_us: int) -> PodRecord | None:
        """Merge a pod's deletion with its last state; None if it requests no GPU or is already deleted."""
        if (record := self._known_or_new(pod, at_us)) is None:
            return None
        ended = lifetime.gone(self._with_newest(record, pod, at_us), pod, at_us=at_us, since_us=since_us)
        self._merge(ended, at_us=at_us)
        return self._delete(self._reconciled(record.uid, is_gone=True), at_us)

    def reconcile(self) -> Iterator[tuple[PodRecord, int]]:
        """Account all pending updates, once for each pod; yields the pod and the time of its latest event."""
        for uid, (_, at_us) in tuple(self._unaccounted.items()):
            yield self._reconciled(uid), at_us
        self._unaccounted.clear()
        for uid, at_us in self.gangs.outdated():
            self._derive(self.records[uid], at_us=at_us)

    def vanished(self, uid: str, *, at_us: int, since_us: int) -> PodRecord:
        """The pod is missing from a relist."""
        ended = lifetime.vanished(self.records[uid], at_us=at_us, since_us=since_us)
        return self._delete(self._derive(ended, at_us=at_us, is_gone=True), at_us)

    def narrowed(self, record: PodRecord, gap: Gap, *, at_us: int) -> PodRecord:
        """A deleted pod with a narrower observation gap; unchanged if its node is already forgotten."""
        better = replace(record, end_us=gap.from_us, gap=gap)
        return self.amended(record, better, at_us=at_us) if record.node_uid in self._nodes.accounts else record

    def namespace_seen(self, namespace: Namespace, *, at_us: int) -> None:
        """Reassign tenants from the namespace's labels and annotations, from now on."""
        if self.namespaces.seen(namespace):
            for record in [self.records[uid] for uid in self.index.in_namespace.get(namespace.metadata.name, ())]:
                tenant = self.namespaces.tenant(record)
                if self.provisional.suits(record, tenant):
                    self.index.assign(record, tenant)
                else:
                    self._derive(record, at_us=at_us, amends=self.provisional.end(record.uid))

    def owner_seen(self, owner: OwnerResolved, *, at_us: int) -> None:
        """Continue the owner walks that waited for this owner."""
        for uid in self.walks.learn(owner):
            if uid in self.records:
                self._derive(self.records[uid], at_us=at_us)

    def on_node(self, node: str) -> list[PodRecord]:
        """The pods bound to the node of this name."""
        return [self.records[uid] for uid in self.index.on_node.get(node, ())]

    def nodes_in_use(self) -> set[str]:
        """UIDs of the nodes of all pods that are kept."""
        return {record.node_uid for record in self.records.values() if record.node_uid}

    def reclassify(self, changed: Reclassified, *, at_us: int) -> None:
        """Recompute the pods of a node whose classification, price or end changed; `reconcile` yields other ends."""
        for uid in tuple(self.index.on_node.get(changed.name, ())):
            before = self.records[uid]
            better = self._nodes.reclassified(before, changed)
            record = self._derive(better, at_us=at_us, since_us=changed.since_us)
            if uid in self._awaiting_node:
                self._delete(record, self._awaiting_node[uid])
            elif record.end_us != before.end_us:
                self._unaccounted[uid] = record, at_us

    def amended(self, record: PodRecord, better: PodRecord, *, at_us: int, since_us: int | None = None) -> PodRecord:
        """Reaccount a deleted pod as `better`; `since_us` if its node or prices changed from then on."""
        accounted = self._accounted(record, better, at_us=at_us, since_us=since_us)
        self.handover.touch(record, accounted)
        return accounted

    def reprice(self, *, at_us: int, since_us: int) -> None:
        """Reaccount the pods whose price changes at `since_us`."""
        for record in tuple(self.records.values()):
            if self._pricing.has_new_price(record, since_us):
                self._derive(record, at_us=at_us, since_us=since_us)

    def account_others(self, *, at_us: int) -> None:
        """Reaccount the pods exported as `other`, now that the label limiter has room."""
        for record in tuple(self.records.values()):
            if record.terms and OTHER in record.terms[-1].labels:
                self._derive(record, at_us=at_us)

    def advance(self, now_us: int) -> None:
        """End the allocations of pods that no kubelet accepted in time."""
        for uid in self.unaccepted.due(now_us):
            if uid in self.records:
                self._derive(self.records[uid], at_us=now_us)

    def as_preemptor(self, uid: str) -> Preemptor | None:
        """An existing or recently deleted pod as a preemptor, with its tier."""
        record = self.records.get(uid)
        return preemptor_from(record, self._rules, self.namespaces) if record else self._recently_deleted.get(uid)

    def nominee(self, pod: Pod, at_us: int) -> Preemptor:
        """A pod as a preemptor, also one that requests no GPU."""
        record, labels = lifetime.new_record(pod, (), at_us=at_us), kept_labels(pod.metadata.labels, self._rules)
        return preemptor_from(replace(record, labels=labels), self._rules, self.namespaces)

    def forget_departed(self, now_us: int) -> None:
        """Forget pods deleted so long ago that no event can arrive, and owners that no pod needs."""
        self._recently_deleted.forget(now_us)
        for uid in [uid for uid, deleted_us in self._awaiting_node.items() if deleted_us < now_us - KEEP_US]:
            self._forget(self.records[uid], now_us)
        self.walks.forget(self.records.values())

    def restore(self, records: Iterable[PodRecord], *, by_same_rules: bool) -> None:
        """Restore the pods of an earlier process as it posted them, by the same or other rules."""
        for known in records:
            if not by_same_rules:
                self.provisional.take_up(known.uid)
            self.index.put(known, tenant=self.namespaces.tenant(known), at_us=0)
            self.unaccepted.put(known, at_us=0)
            if known.walking:
                self.walks.job(known)  # continues from the stored step; requests the first owner again
            if known.left_us is not None:
                self._awaiting_node[known.uid] = known.left_us
            self.records[known.uid] = self._nodes.taken_up(known) if known.node_uid else known
            if is_stand_in(known.node_uid) and self._nodes.lineage.at(known.node, known.scheduled_us or 0):
                self._unaccounted[known.uid] = replace(known), 0  # its node is known: account it there
            self.gangs.pod_restored(known)
            self.handover.changed[known.uid] = None
            self._posting.jobs.restore_pod(known)

    def _known_or_new(self, pod: Pod, at_us: int) -> PodRecord | None:
        if record := self.records.get(pod.metadata.uid):
            return record if record.node else lifetime.with_assigned_units(record, pod, self._rules)
        if pod.metadata.uid in self._recently_deleted:
            return None
        units = effective_units(pod, self._rules)
        return lifetime.new_record(pod, units, at_us=at_us) if units else None

    def _with_newest(self, record: PodRecord, pod: Pod, at_us: int) -> PodRecord:
        """Set labels and marks from the state observed last; versions go back when etcd is restored."""
        labels, marks = kept_labels(pod.metadata.labels, self._rules), lifetime.marks(record, pod, at_us)
        if labels == record.labels and marks == (record.preempted_us, record.disruption):
            return record
        if labels != record.labels and record.uid in self._unaccounted:
            record = self._reconciled(record.uid)  # labels apply from their event on, see _merge
        return replace(record, labels=shared(labels), preempted_us=marks[0], disruption=marks[1])

    def _merge(self, record: PodRecord, *, at_us: int) -> None:
        """Store the new record and mark it as pending; many events change nothing."""
        before = self.records.get(record.uid)
        if record == before:
            return
        self._unaccounted[record.uid] = self._unaccounted.get(record.uid, (before, at_us))[0], at_us
        self.records[record.uid] = record
        if before and before.labels != record.labels:
            self._reconciled(record.uid)

    def _reconciled(self, uid: str, *, is_gone: bool = False) -> PodRecord:
        """The pod after its pending updates are accounted."""
        record = self.records[uid]
        accounted, at_us = self._unaccounted.get(uid, (record, 0))
        return record if accounted is record else self._derive(record, at_us=at_us, is_gone=is_gone)

    def _derive(
        self,
        record: PodRecord,
        *,
        at_us: int,
        amends: bool = False,
        since_us: int | None = None,
        is_gone: bool = False,
    ) -> PodRecord:
        """Recompute all derived fields of `record`, and update indexes and totals.

        With `amends`, the new terms apply from the start. `since_us` is when its node or prices changed. The index gets
        no pod that `is_gone`, unless it is kept until its node is known.
        """
        before, _ = self._unaccounted.get(record.uid, (self.records.get(record.uid), 0))
        tenant = self.namespaces.tenant(record)
        kind, name, walking = self.walks.job(record)
        if (kind, name, walking) != (record.job_kind, record.job, record.walking):
            record = replace(record, job_kind=kind, job=shared(name), walking=walking)
        if record.scheduled_us is None:
            record = self.gangs.updated(before, released(record), at_us=at_us)
        else:
            pod_node = self._nodes.pod_node_of(record)
            record = self.gangs.updated(before, placed(record, pod_node, self._rules, limit=self._limit), at_us=at_us)
            record = self._classified(record, pod_node.history, tenant, at_us=at_us, amends=amends)
            record = self._accounted(before, record, at_us=at_us, since_us=since_us)
            if not record.accepted:
                self.unaccepted.put(record, at_us=at_us)
        self.records[record.uid] = record
        if record.uid in self._unaccounted:
            self._unaccounted[record.uid] = record, at_us
        if record != before:
            self.handover.touch(before, record)
        if is_gone and not is_stand_in(record.node_uid):
            self.index.clocks.learn(record)
        else:
            self.index.put(record, tenant=tenant, at_us=at_us)
        return record

    def _classified(self, record: PodRecord, history: History, tenant: str, *, at_us: int, amends: bool) -> PodRecord:
        """`record` under its present terms; a pod that has ended keeps its terms."""
        is_guess = record.namespace not in self.namespaces.known_marks
        if record.terms and not amends and (record.ending or is_guess):
            return record if record.ending else relimited(record, at_us=at_us, limit=self._limit)
        if is_guess:
            self.provisional.guess(record.uid)
        return with_present_terms(record, history, tenant, self._rules, at_us=at_us, amends=amends, limit=self._limit)

    def _accounted(self, before: PodRecord | None, record: PodRecord, *, at_us: int, since_us: int | None) -> PodRecord:
        posted = before.segments if before else ()
        segments = segments_of(
            record,
            before,
            since_us=since_us,
            until_us=None if record.accepted else lapsed_us(record, at_us),
            prices=self._pricing.keeping(before),
        )
        if before and segments is posted and counts_equally(before, record):
            return record
        kept = alike(posted, segments) if posted else 0
        is_known = before and len(posted) == kept == len(segments) and has_same_revision(before, record)
        revision = record.revision if is_known else next_revision(record, at_us)
        record = replace(record, segments=segments, revision=revision)
        record = self._posting.post(before, record, kept=kept, at_us=at_us)
        update_nodes(self._nodes, before, record, kept=kept, at_us=at_us)
        if not is_known:
            self.handover.revised[record.uid] = record
        return record

    def _delete(self, record: PodRecord, at_us: int) -> PodRecord:
        """Forget a deleted pod, or keep it until its node is known."""
        if not is_stand_in(record.node_uid):
            return self._forget(record, at_us)
        self._unaccounted.pop(record.uid, None)
        self.walks.leave(record.uid)
        self._awaiting_node[record.uid] = at_us
        left = self.records[record.uid] = replace(record, left_us=at_us)
        self.handover.touch(record, left)
        return left

    def _forget(self, record: PodRecord, at_us: int) -> PodRecord:
        """Forget a deleted pod; keep its UID and tier for a while."""
        if preemptor := self.as_preemptor(record.uid):
            self._recently_deleted.add(preemptor, at_us=at_us)
        del self.records[record.uid]
        self._unaccounted.pop(record.uid, None)
        self.walks.leave(record.uid)
        self.provisional.end(record.uid)
        self._awaiting_node.pop(record.uid, None)
        self.index.drop(record)
        self.gangs.drop(record, at_us=at_us)
        self.handover.drop(record.uid)
        return self._posting.jobs.forget_pod(record, at_us=at_us)


class NamespaceTenants(StatePart[Struct]):
    """Relisted at each start; `Pods` holds the state."""

    name = "namespace-tenants"
    kinds = (Kind.NAMESPACES,)

    def __init__(self, pods: Pods) -> None:
        self._pods = pods

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        if isinstance(found, Namespace):
            self._pods.namespace_seen(found, at_us=at_us)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._pods.namespaces.gone(uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self._pods.namespaces.known() - {*uids}:
            self.gone(uid, at_us=at_us)
