"""What capacity costs from when on, by asset, as the ledger stores it.

Late facts may correct which asset a node was, but not what an asset cost: a new price book applies from its load on.
"""

from bisect import bisect_right
from collections.abc import Iterable

from gputally.accounting.prices.pricing import Pricing
from gputally.model.node_record import NodeFacts
from gputally.model.price import Asset, Price


class AssetPrices:
    """Collects new prices of all assets that were ever seen, from `since_us` on."""

    def __init__(self, pricing: Pricing, *, since_us: int) -> None:
        self.since_us = since_us
        self._pricing = pricing
        self._seen: dict[Asset, int] = {}
        """How many changes of the pricing are drained."""

    def see(self, facts: Iterable[tuple[int, NodeFacts]]) -> None:
        """Nodes have these assets."""
        for _, each in facts:
            self._seen.setdefault(each.asset, -1)

    def drain(self) -> dict[tuple[Asset, int], Price | None]:
        """The prices of a GPU-hour since the last call, by asset and time."""
        changes, found = self._pricing.changes, dict[tuple[Asset, int], Price | None]()
        for asset, drained in self._seen.items():
            if drained < len(changes):
                first = bisect_right(changes, self.since_us)
                instants = (self.since_us, *changes[first:]) if drained < 0 else changes[max(first, drained) :]
                found |= {(asset, at_us): self._pricing.of_capacity(asset, at_us) for at_us in instants}
        self._seen = dict.fromkeys(self._seen, len(changes)) if found else self._seen
        return found
