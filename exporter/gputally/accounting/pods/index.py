"""Indexes pods: the pending ones by tier and tenant, the starting ones, and all by node and namespace."""

from collections.abc import Mapping
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct

from gputally.accounting.facts.node_clock import NodeClocks
from gputally.accounting.terms.tenant import UNASSIGNED
from gputally.accounting.terms.tier import NO_TIER, tier_of_pod
from gputally.accounting.watched.unaccounted_pods import UnaccountedPods
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.shares.schemes import requested

Labels = tuple[str, str]
"""The exported tier and tenant."""


class StartingPods:
    """When each starting pod was bound, kept up to date pod by pod: a large job may start thousands at once."""

    def __init__(self) -> None:
        self._labels: dict[str, Labels] = {}
        self._bound_us: dict[Labels, dict[str, int]] = {}
        self._oldest_us: dict[Labels, int] = {}

    def put(self, record: PodRecord) -> None:
        """Add a pod that is starting, update it, or remove it once it has started, ends or is deleted."""
        if record.uid in self._labels:
            self.drop(record.uid)
        is_over = record.started_us is not None or record.deletion_us is not None or record.end_by is not None
        if record.scheduled_us is None or is_over or not record.segments or record.segments[-1].end_us is not None:
            return
        labels = self._labels[record.uid] = record.segments[-1].labels[:2]
        self._bound_us.setdefault(labels, {})[record.uid] = record.scheduled_us
        self._oldest_us.pop(labels, None)

    def drop(self, uid: str) -> None:
        """Remove a pod, if it is starting."""
        if labels := self._labels.pop(uid, None):
            pods = self._bound_us[labels]
            del pods[uid]
            self._oldest_us.pop(labels, None)
            if not pods:
                del self._bound_us[labels]

    def oldest(self) -> Mapping[Labels, int]:
        """When the pod that has been starting for the longest time was bound (µs), by exported tier and tenant."""
        for labels in self._bound_us.keys() - self._oldest_us.keys():
            self._oldest_us[labels] = min(self._bound_us[labels].values())
        return dict(self._oldest_us)


class PendingGroup(Struct, kw_only=True, eq=False):
    """Pending pods of one tier and tenant: when each was created, and their µGPU."""

    tier: str
    tenant: str
    created_us: dict[str, int] = {}
    quantity: int = 0
    known_oldest: tuple[int, str] | None = None

    @property
    def oldest(self) -> tuple[int, str]:
        """Creation and UID of the oldest pod."""
        if self.known_oldest is None:
            self.known_oldest = min(zip(self.created_us.values(), self.created_us, strict=True))
        return self.known_oldest


class PodRequest(NamedTuple):
    """The group of a pending pod, the GPU model that it requires, "" for none, and the µGPU that it requests."""

    group: PendingGroup
    gpu_model: str
    quantity: int


class PendingGroups:
    """The groups of pending pods, kept up to date pod by pod: there may be thousands of pods at each scrape."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._groups: dict[tuple[str, str], PendingGroup] = {}
        self.of: dict[str, PodRequest] = {}
        self.wanted: dict[str, tuple[int, int]] = {}
        """Pods and the µGPU that they request, by the GPU model that they require; "" for none."""

    def by_age(self) -> list[tuple[int, PendingGroup]]:
        """When the oldest pod of each group was created, and the group; that of the oldest pod first."""
        aged = sorted(((group.oldest, group) for group in self._groups.values()), key=itemgetter(0))
        return [(created_us, group) for (created_us, _), group in aged]

    def put(self, record: PodRecord, *, tier: str, tenant: str) -> None:
        """Add a pending pod, or update it."""
        self.drop(record.uid)
        if (group := self._groups.get((tier, tenant))) is None:
            group = self._groups[tier, tenant] = PendingGroup(tier=tier, tenant=tenant)
        pod = PodRequest(group, record.selected_model, requested(record.units, self._rules))
        group.created_us[record.uid] = record.created_us
        group.quantity += pod.quantity
        group.known_oldest = None
        self._count(pod, 1)
        self.of[record.uid] = pod

    def drop(self, uid: str) -> None:
        """Remove a pod, if it is pending."""
        if pod := self.of.pop(uid, None):
            group = pod.group
            del group.created_us[uid]
            group.quantity -= pod.quantity
            group.known_oldest = None
            self._count(pod, -1)
            if not group.created_us:
                del self._groups[group.tier, group.tenant]

    def _count(self, pod: PodRequest, sign: int) -> None:
        pods, quantity = self.wanted.pop(pod.gpu_model, (0, 0))
        if pods + sign:
            self.wanted[pod.gpu_model] = pods + sign, quantity + sign * pod.quantity


class PodIndex:
    """UIDs of pods that are pending, that lack a tier or a tenant, and by node name and namespace.

    The last two keep the order of arrival, which decides whose labels are exported when they are limited. `clocks`
    holds the node clock offsets that the pods show, `unaccounted` the bound pods with GPUs that are not accounted, and
    `starting` those of which no container has run.
    """

    def __init__(self, rules: Rules) -> None:
        self.pending: set[str] = set()
        self.pending_groups = PendingGroups(rules)
        self.without_tier: set[str] = set()
        self.without_tenant: set[str] = set()
        self.on_node: dict[str, dict[str, None]] = {}
        self.in_namespace: dict[str, dict[str, None]] = {}
        self.clocks = NodeClocks()
        self.starting = StartingPods()
        self.unaccounted = UnaccountedPods(rules)
        self._rules = rules

    def put(self, record: PodRecord, *, tenant: str, at_us: int) -> None:
        """Index the state of the pod at `at_us`."""
        is_active = record.end_by is None
        tier = record.terms[-1].tier if record.terms else tier_of_pod(record, self._rules)
        (self.pending.add if is_active and record.scheduled_us is None else self.pending.discard)(record.uid)
        (self.without_tier.add if is_active and tier == NO_TIER else self.without_tier.discard)(record.uid)
        self.assign(record, tenant)
        self.starting.put(record)
        self.unaccounted.accounted(record, at_us=at_us)
        self.clocks.learn(record)
        self.in_namespace.setdefault(record.namespace, {})[record.uid] = None
        if record.node:
            self.on_node.setdefault(record.node, {})[record.uid] = None

    def assign(self, record: PodRecord, tenant: str) -> None:
        """Set the pod's tenant."""
        lacks_one = record.end_by is None and tenant == UNASSIGNED
        (self.without_tenant.add if lacks_one else self.without_tenant.discard)(record.uid)
        if record.uid in self.pending:
            self.pending_groups.put(record, tier=tier_of_pod(record, self._rules), tenant=tenant)
        elif record.uid in self.pending_groups.of:
            self.pending_groups.drop(record.uid)

    def drop(self, record: PodRecord) -> None:
        """Remove a deleted pod."""
        if record.uid in self.pending_groups.of:
            self.pending_groups.drop(record.uid)
        self.starting.drop(record.uid)
        self.unaccounted.forgotten(record.uid)
        for index in (self.pending, self.without_tier, self.without_tenant):
            index.discard(record.uid)
        _drop(self.on_node, record.node, record.uid)
        _drop(self.in_namespace, record.namespace, record.uid)


def _drop(index: dict[str, dict[str, None]], key: str, uid: str) -> None:
    if uids := index.get(key):
        uids.pop(uid, None)
        if not uids:
            del index[key]
