"""The capacity of a period by state, from what nodes offered and what was allocated on them."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from gputally.accounting.nodes.capacity import divide
from gputally.ledger.cuts import pieces
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import CapacityRecord, NodeSteps, Window
from gputally.model.node import CapacityState
from gputally.model.price import Asset, Price, Purchase

NO_NODE: Final = Asset(gpu_model="unknown", pool="none")
"""Of allocations on nodes that were never observed."""


class CapacityCell(NamedTuple):
    """GPU-time (µs·µGPU) of capacity in one state, at one price (None if unpriced) and in one period."""

    state: CapacityState
    gpu_model: str
    pool: str
    purchase: Purchase
    price: Price | None
    period: int
    gpu_time: int


class _Span(NamedTuple):
    """A time in which a node offers the same and the same is allocated; its `last` offer may have ended."""

    start_us: int
    end_us: int
    last: CapacityRecord | None
    allocated: int

    @property
    def exists(self) -> bool:
        """Whether the node still exists."""
        return self.last is not None and self.start_us < self.last.end_us


class OfferedNodes:
    """What each node offered in a window, by UID and in chronological order."""

    def __init__(self, records: Iterable[CapacityRecord]) -> None:
        self.offered: dict[str, list[CapacityRecord]] = {}
        for each in sorted(records, key=lambda record: record.start_us):
            self.offered.setdefault(each.node_uid, []).append(each)
        self._next = {found[0].continues: uid for uid, found in self.offered.items() if found[0].continues}

    def recall(self, earlier: Iterable[CapacityRecord]) -> None:
        """Take the last record of each node that ended before the window."""
        last = {each.node_uid: each for each in sorted(earlier, key=lambda record: record.start_us)}
        for uid, each in last.items():
            self.offered.setdefault(uid, [each])

    def moved(self, found: Iterable[NodeSteps]) -> dict[str, list[tuple[int, int]]]:
        """The steps of each node, with those of an earlier one that it continues."""
        steps: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for each in found:
            uid, rest = each.node_uid, list(each.steps)
            while (following := self._next.get(uid)) is not None:
                born_us = self.offered[following][0].start_us
                passed = bisect_left(rest, born_us, key=lambda step: step[0])
                level = sum(change for _, change in rest[:passed])
                steps[uid] += [*rest[:passed], (born_us, -level)]
                uid, rest = following, [(born_us, level), *rest[passed:]]
            steps[uid] += rest
        return steps


def read_capacity_cells(reader: LedgerReader, window: Window, cuts: Sequence[int] = ()) -> list[CapacityCell]:
    """Capacity + overcommitted = allocated + all other states, at every instant. Raises: LedgerError."""
    nodes = OfferedNodes(reader.capacity(window))
    steps = nodes.moved(reader.allocated_steps(window))
    if steps.keys() - nodes.offered.keys():  # pods that outlived their node, or whose node was never observed
        nodes.recall(reader.capacity(Window(0, window.start_us)))
    sums: defaultdict[tuple[CapacityState, str, str, Purchase, Price | None, int], int] = defaultdict(int)
    for uid in nodes.offered.keys() | steps.keys():
        for span in _spans(nodes.offered.get(uid, []), steps.get(uid, ())):
            asset, price = (span.last.asset, span.last.price) if span.last else (NO_NODE, None)
            for state, quantity in _states(span):
                for piece in pieces(span.start_us, span.end_us, cuts):
                    key = state, asset.gpu_model, asset.pool, asset.purchase, price, piece.period
                    sums[key] += quantity * (piece.end_us - piece.start_us)
    return [CapacityCell(*key, gpu_time) for key, gpu_time in sums.items() if gpu_time]


def _spans(offered: Sequence[CapacityRecord], steps: Sequence[tuple[int, int]]) -> Iterator[_Span]:
    starts = [each.start_us for each in offered]
    changes: Counter[int] = Counter()
    for at_us, change in steps:
        changes[at_us] += change
    instants = sorted({*starts, *(each.end_us for each in offered), *changes})
    allocated = 0
    for start_us, end_us in pairwise(instants):
        allocated += changes[start_us]
        found = bisect_right(starts, start_us)
        yield _Span(start_us, end_us, offered[found - 1] if found else None, allocated)


def _states(span: _Span) -> Iterator[tuple[CapacityState, int]]:
    if span.last and span.exists:
        yield from divide(span.last, span.allocated)
    else:
        yield CapacityState.ALLOCATED, span.allocated
        yield CapacityState.OVERCOMMITTED, span.allocated
