"""The capacity that nodes offered in a period, by state, asset and price."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

from gputally.accounting.nodes.capacity import divide
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import CapacityRecord, NodeSteps, Window, pieces
from gputally.model.node_record import CapacityState
from gputally.model.price import Asset, Price, Purchase

NO_NODE: Final = Asset(gpu_model="unknown", pool="none")
"""The asset of allocations on nodes that were never observed."""


class OfferedNodes:
    """The capacity records of a window by node UID, in chronological order.

    Of a node that ended before the window, the last record is known as soon as it is asked for: pods may outlive their
    node. Raises: LedgerError, here and in all methods.
    """

    def __init__(self, reader: LedgerReader, window: Window) -> None:
        self._reader = reader
        self._window = window
        self._recalled = False
        self._records: dict[str, list[CapacityRecord]] = {}
        self._next: dict[str, str] = {}
        for each in sorted(reader.capacity(window), key=lambda record: record.start_us):
            self._records.setdefault(each.node_uid, []).append(each)
        self._next.update({found[0].continues: uid for uid, found in self._records.items() if found[0].continues})
        self.uids = tuple(self._records)
        """The nodes that offered something in the window."""

    def records(self, uid: str) -> list[CapacityRecord]:
        """The records of a node; none if it was never observed."""
        if uid not in self._records:
            self._recall()
        return self._records.get(uid, [])

    def following(self, uid: str) -> str | None:
        """The node that continues this one, if any."""
        if uid not in self._records:
            self._recall()
        return self._next.get(uid)

    def first(self) -> set[str]:
        """The first node of each machine: the one that continues no other node."""
        return {*self.uids, *self._next} - {*self._next.values()}

    def moved(self, found: Iterable[NodeSteps]) -> dict[str, list[tuple[int, int]]]:
        """The steps of each node, with those of an earlier one that it continues."""
        steps: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for each in found:
            uid, rest = each.node_uid, list(each.steps)
            while (following := self.following(uid)) is not None:
                born_us = self.records(following)[0].start_us
                passed = bisect_left(rest, born_us, key=lambda step: step[0])
                level = sum(change for _, change in rest[:passed])
                steps[uid] += [*rest[:passed], (born_us, -level)]
                uid, rest = following, [(born_us, level), *rest[passed:]]
            steps[uid] += rest
        return steps

    def _recall(self) -> None:
        """Take the last record of each node that ended before the window."""
        if self._recalled:
            return
        self._recalled = True
        earlier = self._reader.capacity(Window(0, self._window.start_us))
        last = {each.node_uid: each for each in sorted(earlier, key=lambda record: record.start_us)}
        for uid, each in last.items():
            self._records.setdefault(uid, [each])
            if each.continues:
                self._next.setdefault(each.continues, uid)


class NodeAsset(NamedTuple):
    """A node's asset and the price of its capacity (None if unpriced), from `from_us` on."""

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


class CapacityCell(NamedTuple):
    """GPU-time (µs·µGPU) of capacity in one state, at one price (None if unpriced) and in one period."""

    state: CapacityState
    gpu_model: str
    pool: str
    purchase: Purchase
    price: Price | None
    period: int
    gpu_time: int


class _OfferSpan(NamedTuple):
    """A time in which a node offers the same and the same is allocated; the `offer` may have ended, or be the next."""

    start_us: int
    end_us: int
    offer: CapacityRecord | None
    allocated: int

    @property
    def exists(self) -> bool:
        """Whether the node exists."""
        return self.offer is not None and self.offer.start_us <= self.start_us < self.offer.end_us


def read_capacity_cells(
    reader: LedgerReader, window: Window, cuts: Sequence[int] = (), *, nodes: OfferedNodes | None = None
) -> list[CapacityCell]:
    """Capacity + overcommitted = allocated + all other states, at every instant.

    `nodes` are those of the window, if they are read already. Raises: LedgerError.
    """
    nodes = nodes or OfferedNodes(reader, window)
    steps = nodes.moved(reader.allocated_steps(window))
    sums: defaultdict[tuple[CapacityState, str, str, Purchase, Price | None, int], int] = defaultdict(int)
    for uid in {*nodes.uids, *steps}:
        for span in _spans(nodes.records(uid), steps.get(uid, ()), window.start_us):
            asset, price = (span.offer.asset, span.offer.price) if span.offer else (NO_NODE, None)
            for state, quantity in _states(span):
                for piece in pieces(span.start_us, span.end_us, cuts):
                    key = state, asset.gpu_model, asset.pool, asset.purchase, price, piece.period
                    sums[key] += quantity * (piece.end_us - piece.start_us)
    return [CapacityCell(*key, gpu_time) for key, gpu_time in sums.items() if gpu_time]


def _spans(offered: Sequence[CapacityRecord], steps: Sequence[tuple[int, int]], since_us: int) -> Iterator[_OfferSpan]:
    """The spans from `since_us` on; before the first offer, it tells the price, and after the last, that one."""
    starts = [each.start_us for each in offered]
    changes: Counter[int] = Counter()
    for at_us, change in steps:
        changes[at_us] += change
    bounds = {*starts, *(each.end_us for each in offered), *changes}
    instants = sorted(at_us for at_us in bounds if at_us >= since_us)
    allocated = 0
    for start_us, end_us in pairwise(instants):
        allocated += changes[start_us]
        found = max(1, bisect_right(starts, start_us))
        yield _OfferSpan(start_us, end_us, offered[found - 1] if offered else None, allocated)


def _states(span: _OfferSpan) -> Iterator[tuple[CapacityState, int]]:
    if span.offer and span.exists:
        yield from divide(span.offer, span.allocated)
    else:
        yield CapacityState.ALLOCATED, span.allocated
        yield CapacityState.OVERCOMMITTED, span.allocated
