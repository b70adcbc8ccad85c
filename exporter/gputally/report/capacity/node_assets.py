"""The asset and the capacity price of the node that an allocation is on, at any time of a window."""

from bisect import bisect_right
from collections.abc import Callable, Hashable
from itertools import chain, pairwise
from typing import Final, NamedTuple

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import Window
from gputally.model.price import Asset, Price
from gputally.report.capacity.offered_nodes import OfferedNodes

NO_NODE: Final = Asset(gpu_model="unknown", pool="none")
"""Of allocations on nodes that were never observed."""


class NodeAsset(NamedTuple):
    """A node's asset and the price of its capacity (None if unpriced, or of an older schema), from `from_us` on."""

    from_us: int
    asset: Asset
    price: Price | None

    @property
    def terms(self) -> tuple[Asset, Price | None]:
        """All but the time."""
        return self.asset, self.price


UNOBSERVED: Final = NodeAsset(0, NO_NODE, None)


class NodeAssets:
    """The assets and prices of nodes, by the UID that a pod was bound to.

    A pod on a node that another one continues is on that one from its first record on. The last record also applies
    after the end of a node, which pods may outlive, and the first one before. With `cuts`, sums by `node_uid` and
    period have one asset and price each:

        cuts = nodes.cuts()
        for each in reader.allocated(window, ("tenant", "node_uid"), cuts=cuts):
            asset = nodes.at(each.labels[1], (window.start_us, *cuts)[each.period])
    """

    def __init__(self, nodes: OfferedNodes, window: Window) -> None:
        self._nodes = nodes
        self._window = window
        self._histories: dict[str, list[NodeAsset]] = {}

    def at(self, node_uid: str, at_us: int) -> NodeAsset:
        """The asset and price at `at_us` (µs). Raises: LedgerError."""
        history = self._history(node_uid)
        if not history:
            return UNOBSERVED
        return history[max(0, bisect_right(history, at_us, key=lambda each: each.from_us) - 1)]

    def cuts(self, of: Callable[[NodeAsset], Hashable] = lambda each: each.terms) -> tuple[int, ...]:
        """The ascending instants (µs) inside the window at which `of` the asset and price of any node changes.

        They are few: nodes seldom change their labels, and prices change for all of them at once. Raises: LedgerError.
        """
        histories = (pairwise(self._history(uid)) for uid in self._nodes.first())
        changes = {now.from_us for then, now in chain.from_iterable(histories) if of(then) != of(now)}
        return tuple(at_us for at_us in sorted(changes) if self._window.start_us < at_us < self._window.end_us)

    def _history(self, uid: str) -> list[NodeAsset]:
        if uid not in self._histories:
            self._histories[uid] = self._changes(uid)
        return self._histories[uid]

    def _changes(self, uid: str) -> list[NodeAsset]:
        """Where the asset or price changes, also by one node continuing another."""
        found = list[NodeAsset]()
        following: str | None = uid
        while following is not None:
            records, following = self._nodes.records(following), self._nodes.following(following)
            end_us = self._nodes.records(following)[0].start_us if following else self._window.end_us
            for each in records:
                entry = NodeAsset(each.start_us, each.asset, each.price)
                if each.start_us < end_us and not (found and found[-1].terms == entry.terms):
                    found.append(entry)
        return found


def read_node_assets(reader: LedgerReader, window: Window) -> NodeAssets:
    """The assets and prices of all nodes in a window. Raises: LedgerError."""
    return NodeAssets(OfferedNodes(reader, window), window)
