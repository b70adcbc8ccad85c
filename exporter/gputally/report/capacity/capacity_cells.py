"""The capacity of a period by state, from what nodes offered and what was allocated on them."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from gputally.accounting.nodes.capacity import divide
from gputally.ledger.cuts import pieces
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import CapacityRecord, Window
from gputally.model.node_record import CapacityState
from gputally.model.price import Price, Purchase
from gputally.report.capacity.node_assets import NO_NODE
from gputally.report.capacity.offered_nodes import OfferedNodes


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


def _spans(offered: Sequence[CapacityRecord], steps: Sequence[tuple[int, int]], since_us: int) -> Iterator[_Span]:
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
        yield _Span(start_us, end_us, offered[found - 1] if offered else None, allocated)


def _states(span: _Span) -> Iterator[tuple[CapacityState, int]]:
    if span.offer and span.exists:
        yield from divide(span.offer, span.allocated)
    else:
        yield CapacityState.ALLOCATED, span.allocated
        yield CapacityState.OVERCOMMITTED, span.allocated
