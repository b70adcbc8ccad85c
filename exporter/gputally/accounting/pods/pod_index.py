"""Which pods there are of a kind that somebody looks for."""

from gputally.accounting.nodes.node_clock import NodeClocks
from gputally.accounting.terms.tenant import UNASSIGNED
from gputally.accounting.terms.tier import NO_TIER, tier_of
from gputally.model.pod import PodRecord
from gputally.model.rules import Rules


class PodIndex:
    """UIDs of the pods that wait, that lack a tier or a tenant, and by the names of their nodes and namespaces.

    Those are in the order in which they came, which decides whose labels are exported where not all are. `clocks` is
    what they show of their nodes' clocks.
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
        """Take in the pod as it is now."""
        lasts = record.end_by is None
        tier = tier_of(record.class_name, record.priority, self._rules)
        _mark(self.pending, record.uid, belongs=lasts and record.scheduled_us is None)
        _mark(self.without_tier, record.uid, belongs=lasts and tier == NO_TIER)
        self.assign(record, tenant)
        if record.clock or record.node in self.clocks.shown_by:
            self.clocks.learn(record)
        self.in_namespace.setdefault(record.namespace, {})[record.uid] = None
        if record.node:
            self.on_node.setdefault(record.node, {})[record.uid] = None

    def assign(self, record: PodRecord, tenant: str) -> None:
        """The pod belongs to `tenant` now."""
        _mark(self.without_tenant, record.uid, belongs=record.end_by is None and tenant == UNASSIGNED)

    def drop(self, record: PodRecord) -> None:
        """Forget a pod that no longer exists."""
        for index in (self.pending, self.without_tier, self.without_tenant):
            index.discard(record.uid)
        _drop(self.on_node, record.node, record.uid)
        _drop(self.in_namespace, record.namespace, record.uid)


def _mark(uids: set[str], uid: str, *, belongs: bool) -> None:
    if belongs:
        uids.add(uid)
    else:
        uids.discard(uid)


def _drop(places: dict[str, dict[str, None]], place: str, uid: str) -> None:
    if uids := places.get(place):
        uids.pop(uid, None)
        if not uids:
            del places[place]
