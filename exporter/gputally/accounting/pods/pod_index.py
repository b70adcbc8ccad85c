"""Indexes of pods."""

from gputally.accounting.nodes.node_clock import NodeClocks
from gputally.accounting.terms.tenant import UNASSIGNED
from gputally.accounting.terms.tier import NO_TIER, tier_of_pod
from gputally.model.pod import PodRecord
from gputally.model.rules import Rules


class PodIndex:
    """UIDs of pods that are pending, that lack a tier or a tenant, and by node name and namespace.

    The last two keep the order of arrival, which decides whose labels are exported when they are limited. `clocks`
    holds the node clock offsets that the pods show.
    """

    def __init__(self, rules: Rules) -> None:
        self.pending: set[str] = set()
        self.without_tier: set[str] = set()
        self.without_tenant: set[str] = set()
        self.on_node: dict[str, dict[str, None]] = {}
        self.in_namespace: dict[str, dict[str, None]] = {}
        self.clocks = NodeClocks()
        self._rules = rules

    def put(self, record: PodRecord, *, tenant: str) -> None:
        """Index the current state of the pod."""
        is_active = record.end_by is None
        tier = record.terms[-1].tier if record.terms else tier_of_pod(record, self._rules)
        _set_member(self.pending, record.uid, is_member=is_active and record.scheduled_us is None)
        _set_member(self.without_tier, record.uid, is_member=is_active and tier == NO_TIER)
        self.assign(record, tenant)
        if record.clock or record.node in self.clocks.shown_by:
            self.clocks.learn(record)
        self.in_namespace.setdefault(record.namespace, {})[record.uid] = None
        if record.node:
            self.on_node.setdefault(record.node, {})[record.uid] = None

    def assign(self, record: PodRecord, tenant: str) -> None:
        """Set the pod's tenant."""
        _set_member(self.without_tenant, record.uid, is_member=record.end_by is None and tenant == UNASSIGNED)

    def drop(self, record: PodRecord) -> None:
        """Remove a deleted pod."""
        for index in (self.pending, self.without_tier, self.without_tenant):
            index.discard(record.uid)
        _drop(self.on_node, record.node, record.uid)
        _drop(self.in_namespace, record.namespace, record.uid)


def _set_member(uids: set[str], uid: str, *, is_member: bool) -> None:
    if is_member:
        uids.add(uid)
    else:
        uids.discard(uid)


def _drop(index: dict[str, dict[str, None]], key: str, uid: str) -> None:
    if uids := index.get(key):
        uids.pop(uid, None)
        if not uids:
            del index[key]
