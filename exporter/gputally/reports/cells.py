"""What a report adds up: allocated time by its lines, jobs, models, tiers and prices."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Final, TypeVar

from msgspec import Struct

from gputally.ledger.preemption_records import LostTime
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import JOB, AllocatedTime, JobSet, MeasuredTime
from gputally.model.lost_work import CheckpointSource
from gputally.model.node_record import CapacityState
from gputally.model.price import Price
from gputally.reports.capacity import read_capacity_cells
from gputally.reports.query import ReportQuery
from gputally.reports.time_dimensions import Periods

_STORED: Final = {"pod": "name"}
"""Columns that the ledger calls otherwise."""
_PURCHASE: Final = "purchase"
"""The column that is part of the price."""
UNALLOCATED: Final = "(unallocated)"
"""The tenant, tier or job of capacity that nobody held."""
_HELD: Final = (CapacityState.ALLOCATED, CapacityState.OVERCOMMITTED)
_KIND: Final = ("gpu_model", "tier")
_STATE: Final = "state"


_Found = TypeVar("_Found", AllocatedTime, JobSet, MeasuredTime, LostTime)


class _LinePart(Struct, frozen=True, kw_only=True, gc=False):
    """A part of a line at one price (None if unpriced); `labels` are the values of the query's columns."""

    labels: tuple[str, ...]
    price: Price | None

    @property
    def currency(self) -> str:
        """The currency of its cost; empty if it is unpriced."""
        return self.price.currency if self.price else ""


class _LineTime(_LinePart, frozen=True, kw_only=True, gc=False):
    """Allocated time (µs·µGPU)."""

    gpu_time: int

    @property
    def cost(self) -> int:
        """The exact cost, see `COST_UNIT`; 0 if it is unpriced."""
        return self.price.cost(self.gpu_time) if self.price else 0


class Cell(_LineTime, frozen=True, kw_only=True, gc=False):
    """Allocated time in one state."""

    state: str


class JobCell(_LineTime, frozen=True, kw_only=True, gc=False):
    """Allocated time of one job; `kind` is what affects the price: GPU model, tier and purchase option."""

    job: tuple[str, ...]
    kind: tuple[str, ...]


class LineJobs(_LinePart, frozen=True, kw_only=True, gc=False):
    """Different jobs, as numbers that are the same in all lines of one read.

    `bound` of their pods were bound in the period, after `wait_us` together.
    """

    jobs: set[int]
    bound: int = 0
    wait_us: int = 0


class UnobservedCell(_LinePart, frozen=True, kw_only=True, gc=False):
    """GPU-time (µs·µGPU) that allocations may have had in the gaps in which they ended, at most; it costs nothing."""

    gpu_time: int


class LostCell(_LineTime, frozen=True, kw_only=True, gc=False):
    """Allocated time that preemptions destroyed, at most if it `is_upper_bound`; it is part of a `Cell`."""

    is_upper_bound: bool


class UsageCell(_LinePart, frozen=True, kw_only=True, gc=False):
    """What agents measured."""

    usage: MeasuredTime

    @property
    def idle_cost(self) -> int:
        """The cost of the idle time, see `COST_UNIT`; 0 if it is unpriced."""
        return self.price.cost(self.usage.idle) if self.price else 0


def read_cells(reader: LedgerReader, query: ReportQuery) -> tuple[list[Cell], list[LineJobs]]:
    """The allocated time of the query's period, and its jobs. Raises: LedgerError."""
    if query.window.start_us >= query.window.end_us:
        return [], []
    columns, jobs_columns = read_columns(query, (_STATE,)), read_columns(query)
    times, jobs = reader.allocated_with_jobs(
        query.window, stored_names(columns), jobs_by=stored_names(jobs_columns), cuts=query.periods.cuts
    )
    cells = [
        Cell(labels=labels, state=state, price=time.price, gpu_time=time.gpu_time)
        for time, labels, (state,) in included(times, columns, query, more=(_STATE,))
    ]
    sets = [
        LineJobs(
            labels=labels,
            price=found.price,
            jobs=found.jobs,
            bound=found.bound,
            wait_us=found.wait_us,
        )
        for found, labels, _ in included(jobs, jobs_columns, query)
    ]
    return cells, sets


def read_allocated(reader: LedgerReader, query: ReportQuery) -> Iterator[Cell]:
    """The allocated time of the query's period, without its jobs. Raises: LedgerError."""
    if query.window.start_us >= query.window.end_us:
        return
    columns = read_columns(query, (_STATE,))
    times = reader.allocated(query.window, stored_names(columns), cuts=query.periods.cuts)
    for time, labels, (state,) in included(times, columns, query, more=(_STATE,)):
        yield Cell(labels=labels, state=state, price=time.price, gpu_time=time.gpu_time)


def read_unallocated(reader: LedgerReader, query: ReportQuery) -> list[Cell]:
    """The capacity that nobody held in the query's period, `UNALLOCATED` in columns that only allocations have.

    Its states are those of `CapacityState`. Raises: LedgerError.
    """
    if query.window.start_us >= query.window.end_us:
        return []
    found, periods = list[Cell](), query.periods
    for each in read_capacity_cells(reader, query.window, periods.cuts):
        if each.state in _HELD:
            continue
        values = dict.fromkeys((*query.columns, *(other.column for other in query.filters)), UNALLOCATED)
        values |= {"gpu_model": each.gpu_model, "pool": each.pool, _PURCHASE: each.purchase.value}
        values |= periods.values[each.period]
        if query.includes(values):
            labels = labels_of(values, query)
            found.append(Cell(labels=labels, state=each.state.value, price=each.price, gpu_time=each.gpu_time))
    return found


def read_job_cells(reader: LedgerReader, query: ReportQuery) -> Iterator[JobCell]:
    """The allocated time of the query's period, by job. Raises: LedgerError."""
    if query.window.start_us >= query.window.end_us:
        return
    columns = read_columns(query, (*JOB, *_KIND))
    times = reader.allocated(query.window, stored_names(columns), cuts=query.periods.cuts)
    for time, labels, values in included(times, columns, query, more=(*JOB, *_KIND, _PURCHASE)):
        yield JobCell(
            labels=labels,
            job=values[: len(JOB)],
            kind=values[len(JOB) :],
            price=time.price,
            gpu_time=time.gpu_time,
        )


def read_usage(reader: LedgerReader, query: ReportQuery) -> Iterator[UsageCell]:
    """The measured usage of the query's period. Raises: LedgerError."""
    if query.window.start_us >= query.window.end_us:
        return
    columns = read_columns(query)
    found = reader.measured(query.window, stored_names(columns), cuts=query.periods.cuts)
    for usage, labels, _ in included(found, columns, query):
        yield UsageCell(labels=labels, price=usage.price, usage=usage)


def read_lost(reader: LedgerReader, query: ReportQuery) -> Iterator[LostCell]:
    """What preemptions destroyed of the query's period, whenever they were. Raises: LedgerError."""
    if query.window.start_us >= query.window.end_us:
        return
    columns = read_columns(query)
    found = reader.lost(query.window, stored_names(columns), cuts=query.periods.cuts)
    for lost, labels, _ in included(found, columns, query):
        yield LostCell(
            labels=labels,
            price=lost.price,
            gpu_time=lost.gpu_time,
            is_upper_bound=lost.basis is CheckpointSource.START,
        )


def read_columns(query: ReportQuery, more: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns to read, each once: those of the lines, of the filters, and `more`."""
    filtered = (each.column for each in query.filters)
    derived = {_PURCHASE, *query.times}
    return tuple(dict.fromkeys(column for column in (*query.columns, *filtered, *more) if column not in derived))


def stored_names(columns: Iterable[str]) -> list[str]:
    """What the ledger calls these columns."""
    return [_STORED.get(each, each) for each in columns]


def included(
    found: Iterable[_Found],
    columns: Sequence[str],
    query: ReportQuery,
    *,
    more: Sequence[str] = (),
    periods: Periods | None = None,
) -> Iterator[tuple[_Found, tuple[str, ...], tuple[str, ...]]]:
    """What the filters include, each with its labels, the values of the query's columns, and the values of `more`.

    It was read by `columns` and by the query's periods, or by `periods`.
    """
    times, of_period = _times_of(periods or query.periods)
    names = list(chain(columns, (_PURCHASE,), times))
    labels_of, more_of = _values_of(query.columns, names), _values_of(more, names)
    filters = [(names.index(limit.column), limit) for limit in query.filters]
    if not filters and {*query.columns, *more} <= {*columns}:  # of many rows, nothing else is looked at
        yield from ((each, labels_of(each.labels), more_of(each.labels)) for each in found)
        return
    for each in found:
        purchase = each.price.purchase.value if each.price else ""
        values = each.labels + (purchase,) + of_period[each.period]
        if not filters or all(limit.includes(values[place]) for place, limit in filters):
            yield each, labels_of(values), more_of(values)


def _times_of(periods: Periods) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The dimensions of time, and the values of each period."""
    names = tuple(periods.values[0])
    return names, [tuple(values[name] for name in names) for values in periods.values]


def _values_of(wanted: Sequence[str], names: Sequence[str]) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """A function that takes the wanted ones out of the values with these names."""
    places = [names.index(each) for each in wanted]
    if len(places) > 1:
        return itemgetter(*places)
    first = next(iter(places), 0)
    return itemgetter(slice(first, first + len(places)))


def labels_of(values: Mapping[str, str], query: ReportQuery) -> tuple[str, ...]:
    """The values of the query's columns."""
    return tuple(map(values.__getitem__, query.columns))
