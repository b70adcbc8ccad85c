"""Where the time of all GPUs went, in parts that do not overlap, at the price of the capacity of each node."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct, field

from gputally.ledger.protocol import LedgerReader
from gputally.model.allocation import State
from gputally.model.lost_work import CheckpointSource
from gputally.model.node_record import CapacityState
from gputally.model.price import Price
from gputally.report.capacity.capacity_cells import read_capacity_cells
from gputally.report.capacity.node_assets import NodeAssets
from gputally.report.capacity.offered_nodes import OfferedNodes
from gputally.report.cells import included, labels_of, read_columns, stored_names
from gputally.report.report_query import ReportQuery

ALLOCATED: Final = "allocated"
RUNNING: Final = "running"
MEASURED: Final = "measured"
USED: Final = "used"
NOT_LOST: Final = "not_lost"
SUCCEEDED: Final = "succeeded"
UNMEASURED: Final = "unmeasured"
USED_BEYOND: Final = "used_beyond_running"
IDLE: Final = "idle"
SINCE_CHECKPOINT: Final = "lost_since_checkpoint"
SINCE_START: Final = "lost_since_start"
"""Work lost by pods of which no checkpoint is known: an upper bound."""
OVERCOMMITTED: Final = CapacityState.OVERCOMMITTED.value

_NODE: Final = "node_uid"
_STATE: Final = "state"
_COMPARED: Final = ("job_outcome", "tier", "tenant", _NODE)
"""Measured time is compared with running time by these: not all nodes have agents, and sums by tier or tenant agree."""


class WaterfallPart(NamedTuple):
    """GPU-time (µs·µGPU) that did not reach a `step` because of a `cause`, at the price of capacity (None if unpriced).

    The part that reached the last step has that one as its cause. `USED_BEYOND` and `OVERCOMMITTED` are time by
    which a step has more than the one before. `labels` is None for capacity that nobody held.
    """

    labels: tuple[str, ...] | None
    step: str
    cause: str
    price: Price | None
    gpu_time: int


class Billed(NamedTuple):
    """What the allocations of a line cost by their own prices, see `COST_UNIT`."""

    labels: tuple[str, ...]
    currency: str
    cost: int


class _Held(Struct):
    """Allocated time by state, what agents measured of it, and what preemptions destroyed of `used`, by cause."""

    states: Counter[str] = field(default_factory=Counter)
    idle: int = 0
    used: int = 0
    lost: Counter[str] = field(default_factory=Counter)


_HeldKey = tuple[tuple[str, ...], Price | None, tuple[str, ...]]
"""The labels of a line, the price of capacity, and the values of `_COMPARED`."""


def read_waterfall_parts(reader: LedgerReader, query: ReportQuery) -> tuple[list[WaterfallPart], list[Billed]]:
    """The parts of the query's period, those of capacity only if the query has no filter. Raises: LedgerError."""
    offered = OfferedNodes(reader, query.window)
    nodes = NodeAssets(offered, query.window)
    periods = query.periods.divided(nodes.cuts(lambda each: each.price))
    starts, columns = (query.window.start_us, *periods.cuts), read_columns(query, _COMPARED)
    held: defaultdict[_HeldKey, _Held] = defaultdict(_Held)
    billed = Counter[tuple[tuple[str, ...], str]]()

    def key_of(values: Mapping[str, str], period: int) -> _HeldKey:
        price = nodes.at(values[_NODE], starts[period]).price
        return labels_of(values, query), price, tuple(values[each] for each in _COMPARED)

    with_state = (*columns, _STATE)
    times = reader.allocated(query.window, stored_names(with_state), cuts=periods.cuts)
    for time, values in included(times, with_state, query, periods):
        held[key_of(values, time.period)].states[values[_STATE]] += time.gpu_time
        if time.price:
            billed[labels_of(values, query), time.price.currency] += time.price.cost(time.gpu_time)
    usages = reader.measured(query.window, stored_names(columns), cuts=periods.cuts)
    for usage, values in included(usages, columns, query, periods):
        found, idle = held[key_of(values, usage.period)], max(0, usage.idle)  # an hour is divided into integers
        found.idle += idle
        found.used += usage.measured - idle
    losses = reader.lost(query.window, stored_names(columns), cuts=periods.cuts)
    for lost, values in included(losses, columns, query, periods):
        cause = SINCE_START if lost.basis is CheckpointSource.START else SINCE_CHECKPOINT
        held[key_of(values, lost.period)].lost[cause] += max(0, lost.used - lost.burst)
    capacity = () if query.filters else _capacity(reader, query, offered)
    parts = chain(capacity, chain.from_iterable(_parts(key, found) for key, found in held.items()))
    return [each for each in parts if each.gpu_time], [Billed(*key, cost) for key, cost in billed.items()]


def _capacity(reader: LedgerReader, query: ReportQuery, nodes: OfferedNodes) -> Iterator[WaterfallPart]:
    """Capacity that nobody held, and allocations above capacity."""
    for each in read_capacity_cells(reader, query.window, nodes=nodes):
        if each.state is not CapacityState.ALLOCATED:
            yield WaterfallPart(None, ALLOCATED, each.state.value, each.price, each.gpu_time)


def _parts(key: _HeldKey, held: _Held) -> Iterator[WaterfallPart]:
    """Usage is not stored by state: what was measured beyond the running time was measured before or after it.

    The time before and after is a loss already, so it is not idle, too; what was even used beyond it is a gain. Of lost
    work, only what was used counts here: the rest is idle or unmeasured already. No outcome has it, too.
    """
    labels, price, (outcome, *_) = key
    for state, gpu_time in held.states.items():
        if state != State.RUNNING:
            yield WaterfallPart(labels, RUNNING, state, price, gpu_time)
    unmeasured = held.states[State.RUNNING] - held.idle - held.used
    outside = min(max(0, -unmeasured), held.idle)
    yield WaterfallPart(labels, MEASURED, UNMEASURED, price, max(0, unmeasured))
    yield WaterfallPart(labels, MEASURED, USED_BEYOND, price, max(0, -unmeasured) - outside)
    yield WaterfallPart(labels, USED, IDLE, price, held.idle - outside)
    rest = held.used
    for cause, lost in sorted(held.lost.items()):
        part = min(lost, rest)  # sums of divided hours differ by the rounding of each
        yield WaterfallPart(labels, NOT_LOST, cause, price, part)
        rest -= part
    yield WaterfallPart(labels, SUCCEEDED, outcome, price, rest)
