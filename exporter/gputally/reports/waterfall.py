"""Waterfalls: where the time of all GPUs went, from capacity to jobs that succeeded, in parts that add up exactly."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct, field

from gputally.ledger.protocol import LedgerReader
from gputally.model.allocation import State
from gputally.model.lost_work import CheckpointSource
from gputally.model.node_record import CapacityState
from gputally.model.price import Price
from gputally.reports.bill_rows import OTHERS
from gputally.reports.capacity import NodeAssets, OfferedNodes, read_capacity_cells
from gputally.reports.cells import included, read_columns, stored_names
from gputally.reports.query import ReportQuery

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
_HeldKey = tuple[tuple[str, ...], Price | None, tuple[str, ...]]
"""The labels of a line, the price of capacity, and the values of `_COMPARED`."""
CAPACITY: Final = "capacity"
CAUSES: Final[Mapping[str, tuple[str, ...]]] = {
    CAPACITY: (),
    ALLOCATED: ("free", "cordoned", "unhealthy", "unsliced", "unknown", OVERCOMMITTED),
    RUNNING: (State.STARTING.value, State.GANG_WAIT.value, State.TERMINATING.value),
    MEASURED: (UNMEASURED, USED_BEYOND),
    USED: (IDLE,),
    NOT_LOST: (SINCE_CHECKPOINT, SINCE_START),
    SUCCEEDED: ("failed", "failed_early", "completed_early", "deleted", "preempted", "lost", "running", "unknown"),
}
"""The causes of the difference to the step before, by step; the last ones are outcomes of jobs."""
GAINS: Final = (OVERCOMMITTED, USED_BEYOND)
"""The causes by which a step has more than the one before."""
Key = tuple[str, str]
"""Step and cause; the last step is the cause of what reached it."""
KEYS: Final[Sequence[Key]] = (
    *((step, cause) for step, causes in CAUSES.items() for cause in causes),
    (SUCCEEDED, SUCCEEDED),
)


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


def read_waterfall_parts(reader: LedgerReader, query: ReportQuery) -> tuple[list[WaterfallPart], list[Billed]]:
    """The parts of the query's period, those of capacity only if the query has no filter. Raises: LedgerError."""
    offered = OfferedNodes(reader, query.window)
    nodes = NodeAssets(offered, query.window)
    periods = query.periods.divided(nodes.cuts(lambda each: each.price))
    starts, columns = (query.window.start_us, *periods.cuts), read_columns(query, _COMPARED)
    held: defaultdict[_HeldKey, _Held] = defaultdict(_Held)
    billed = Counter[tuple[tuple[str, ...], str]]()

    def key_of(labels: tuple[str, ...], compared: tuple[str, ...], period: int) -> _HeldKey:
        return labels, nodes.at(compared[_COMPARED.index(_NODE)], starts[period]).price, compared

    with_state = (*columns, _STATE)
    times = reader.allocated(query.window, stored_names(with_state), cuts=periods.cuts)
    more = (*_COMPARED, _STATE)
    for time, labels, values in included(times, with_state, query, more=more, periods=periods):
        held[key_of(labels, values[:-1], time.period)].states[values[-1]] += time.gpu_time
        if time.price:
            billed[labels, time.price.currency] += time.price.cost(time.gpu_time)
    usages = reader.measured(query.window, stored_names(columns), cuts=periods.cuts)
    for usage, labels, compared in included(usages, columns, query, more=_COMPARED, periods=periods):
        idle = max(0, usage.idle)  # an hour is divided into integers
        found = held[key_of(labels, compared, usage.period)]
        found.idle += idle
        found.used += usage.measured - idle
    losses = reader.lost(query.window, stored_names(columns), cuts=periods.cuts)
    for lost, labels, compared in included(losses, columns, query, more=_COMPARED, periods=periods):
        cause = SINCE_START if lost.basis is CheckpointSource.START else SINCE_CHECKPOINT
        held[key_of(labels, compared, lost.period)].lost[cause] += max(0, lost.used - lost.burst)
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


class Amount(Struct, kw_only=True):
    """GPU-time (µs·µGPU), the part of it that has no price, and the cost, see `COST_UNIT`."""

    gpu_time: int = 0
    unpriced: int = 0
    cost: int = 0

    def add(self, other: "Amount", *, sign: int = 1) -> None:
        """Add the other one, or subtract it."""
        self.gpu_time += sign * other.gpu_time
        self.unpriced += sign * other.unpriced
        self.cost += sign * other.cost


class Waterfall(Struct, kw_only=True):
    """One waterfall in one currency; `labels` is None for the whole.

    `parts` are never negative; those of `GAINS` are missing in the steps before theirs. `billed` is what its
    allocations cost by their own prices.
    """

    labels: tuple[str, ...] | None
    currency: str
    first: str
    parts: dict[Key, Amount] = field(default_factory=lambda: {key: Amount() for key in KEYS})
    billed: int = 0

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the waterfall, from the first one on."""
        return tuple(CAUSES)[tuple(CAUSES).index(self.first) :]

    def level(self, step: str) -> Amount:
        """What reached this step."""
        found = Amount()
        for key in keys_after(step):
            found.add(self.parts[key], sign=sign_of(key))
        return found

    def add(self, other: "Waterfall") -> None:
        """Add all of another one."""
        self.billed += other.billed
        for key, amount in other.parts.items():
            self.parts[key].add(amount)


def keys_after(step: str) -> Iterator[Key]:
    """The parts that reached this step, and the gains after it."""
    later = tuple(CAUSES)[tuple(CAUSES).index(step) + 1 :]
    return (key for key in KEYS if key[0] in later or key == (SUCCEEDED, SUCCEEDED))


def sign_of(key: Key) -> int:
    """Whether the part counts in the steps before its own, or is missing there."""
    return -1 if key[1] in GAINS else 1


def waterfalls_of(
    parts: Iterable[WaterfallPart], billed: Iterable[Billed], *, first: str, top: int | None = None
) -> list[Waterfall]:
    """Waterfalls by currency: the whole, then its lines, the highest cost first; those beyond the `top` are added up.

    Lines begin at the allocated step. Time without a price belongs to the only currency, or has one of its own.
    """
    found, costs = list(parts), list(billed)
    known = sorted({each.price.currency for each in found if each.price} | {each.currency for each in costs})
    unpriced = known[0] if len(known) == 1 else ""
    sums: defaultdict[str, dict[tuple[str, ...] | None, Waterfall]] = defaultdict(dict)

    def waterfalls(labels: tuple[str, ...] | None, currency: str) -> Iterator[Waterfall]:
        lines = sums[currency or unpriced]
        for line in dict.fromkeys((None, labels or None)):
            begin = first if line is None else ALLOCATED
            yield lines.setdefault(line, Waterfall(labels=line, currency=currency or unpriced, first=begin))

    for part in found:
        amount = _amount(part)
        for each in waterfalls(part.labels, part.price.currency if part.price else ""):
            each.parts[part.step, part.cause].add(amount)
    for cost in costs:
        for each in waterfalls(cost.labels, cost.currency):
            each.billed += cost.cost
    return [each for currency in sorted(sums) for each in _ordered(sums[currency], top)]


def _amount(part: WaterfallPart) -> Amount:
    if part.price is None:
        return Amount(gpu_time=part.gpu_time, unpriced=part.gpu_time)
    return Amount(gpu_time=part.gpu_time, cost=part.price.cost(part.gpu_time))


def _ordered(found: Mapping[tuple[str, ...] | None, Waterfall], top: int | None) -> Iterator[Waterfall]:
    yield found[None]
    lines = [(labels, each) for labels, each in found.items() if labels is not None]
    levels = {labels: each.level(ALLOCATED) for labels, each in lines}
    lines.sort(key=lambda line: (-levels[line[0]].cost, -levels[line[0]].gpu_time, line[0]))
    yield from (each for _, each in lines[:top])
    if top is not None and (rest := lines[top:]):
        others = Waterfall(labels=(OTHERS,) * len(rest[0][0]), currency=rest[0][1].currency, first=ALLOCATED)
        for _, each in rest:
            others.add(each)
        yield others
