"""Devices that nodes offer, that look like GPUs, and that no rule weighs: nothing else shows them."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from gputally.accounting.base.shared import shared
from gputally.accounting.base.state_part import KeyedPart
from gputally.model.kube.meta import Kind, Object
from gputally.model.kube.nodes import Node
from gputally.model.node_record import UnknownOffer
from gputally.model.rules import Rules
from gputally.shares.unknown_devices import is_unknown_device

MOST_RESOURCES: Final = 20
"""Resources that are exported by name, those that most nodes offer first; the nodes of others count as `other`."""
OTHER: Final = "other"
_MOST_OF_NODE: Final = 16
"""Resources kept of one node: a device plugin may invent any number."""


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
