"""The inventory of existing nodes: conflicts of labels, GPUs without a price or never offered, unknown devices."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from gputally.accounting.base.compact import shared
from gputally.accounting.base.state_part import KeyedPart
from gputally.accounting.nodes.capacity_account import NodeAccount
from gputally.accounting.nodes.facts import is_never_offered
from gputally.accounting.prices.pricing import Pricing
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.nodes import Node
from gputally.model.node_record import LabelConflict, UnknownOffer
from gputally.model.rules import Rules
from gputally.shares.unknown_devices import is_unknown_device

MOST_RESOURCES: Final = 20
"""Resources that are exported by name, those that most nodes offer first; the nodes of others count as `other`."""
OTHER: Final = "other"
_MOST_OF_NODE: Final = 16
"""Resources kept of one node: a device plugin may invent any number."""


class Inventory(NamedTuple):
    """Existing nodes with GPUs, nodes with conflicting labels, unpriced µGPU, and µGPU that were never offered.

    Nodes whose GPU labels contradict their units are by reason, 0 if there are none. The µGPU are by exported
    (gpu_model, pool), with 0 for groups without any.
    """

    nodes: int
    purchase_conflicts: int
    label_conflicts: dict[LabelConflict, int]
    unpriced: dict[tuple[str, str], int]
    never_offered: dict[tuple[str, str], int]


def inventory_of(accounts: Iterable[NodeAccount], pricing: Pricing, limiter: LabelLimiter, *, at_us: int) -> Inventory:
    """The inventory at `at_us`."""
    facts = [each.record.facts[-1][1] for each in accounts if each.record.gone_us is None]
    unpriced: dict[tuple[str, str], int] = {}
    never_offered: dict[tuple[str, str], int] = {}
    for each in facts:
        if each.physical:
            group = (limiter.shown("gpu_model", each.gpu_model), limiter.shown("pool", each.pool))
            missing = 0 if pricing.of_capacity(each.asset, at_us) else each.physical
            unpriced[group] = unpriced.get(group, 0) + missing
            counted = each.physical if is_never_offered(each.physical, each.offered) else 0
            never_offered[group] = never_offered.get(group, 0) + counted
    return Inventory(
        nodes=sum(1 for each in facts if each.physical),
        purchase_conflicts=sum(1 for each in facts if each.purchase_conflict),
        label_conflicts=dict.fromkeys(LabelConflict, 0) | Counter(each.conflict for each in facts if each.conflict),
        unpriced=unpriced,
        never_offered=never_offered,
    )


class UnknownOffers(KeyedPart[UnknownOffer]):
    """The unknown devices of each node, by its UID; most nodes have none."""

    name = "unknown-offer"
    kinds = (Kind.NODES,)

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self._rules = rules
        self._nodes: Mapping[str, int] | None = None

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        if not isinstance(found, Node):
            return
        uid, resources = found.metadata.uid, self._unknown(found)
        if not resources:
            self.gone(uid, at_us=at_us)
        elif uid not in self.known or self.known[uid].resources != resources:
            self._store(uid, UnknownOffer(uid=uid, resources=shared(resources)))
            self._nodes = None

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        if self._remove(uid):
            self._nodes = None

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.known.keys() - uids:
            self.gone(uid, at_us=at_us)

    def restore(self, documents: Iterable[UnknownOffer], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.restore`."""
        self.known = {each.uid: each for each in documents}

    def read(self) -> Mapping[str, int]:
        """Nodes by resource, `other` for those beyond `MOST_RESOURCES`; counted again only after a change."""
        if self._nodes is None:
            counts = Counter(name for each in self.known.values() for name in each.resources)
            ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            found = dict(sorted(ranked[:MOST_RESOURCES]))
            rest = {name for name, _ in ranked[MOST_RESOURCES:]}
            found[OTHER] = sum(1 for each in self.known.values() if not rest.isdisjoint(each.resources))
            self._nodes = found
        return self._nodes

    def _unknown(self, node: Node) -> tuple[str, ...]:
        status = node.status
        offers = (*(status.capacity or {}).items(), *(status.allocatable or {}).items())
        found = {name for name, amount in offers if is_unknown_device(name, self._rules) and str(amount) != "0"}
        return tuple(sorted(found)[:_MOST_OF_NODE])
