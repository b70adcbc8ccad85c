"""What a report adds up: allocated time by its lines, jobs, models, tiers and prices."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import JOB, AllocatedTime, JobSet, MeasuredTime
from gputally.model.node import CapacityState
from gputally.model.price import Price
from gputally.report.capacity.capacity_cells import read_capacity_cells
from gputally.report.report_query import ReportQuery

_STORED: Final = {"pod": "name"}
"""Columns that the ledger calls otherwise."""
_PURCHASE: Final = "purchase"
"""The column that is part of the price."""
UNALLOCATED: Final = "(unallocated)"
"""The tenant, tier or job of capacity that nobody held."""
_HELD: Final = (CapacityState.ALLOCATED, CapacityState.OVERCOMMITTED)
_KIND: Final = ("gpu_model", "tier")
_STATE: Final = "state"


_Found = TypeVar("_Found", AllocatedTime, JobSet, MeasuredTime)


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
    """Different jobs, as numbers that are the same in all lines of one read."""

    jobs: set[int]


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
    columns, jobs_columns = _columns(query, (_STATE,)), _columns(query, ())
    times, jobs = reader.allocated_with_jobs(
        query.window, _stored(columns), jobs_by=_stored(jobs_columns), cuts=query.periods.cuts
    )
    cells = [
        Cell(labels=_labels(values, query), state=values[_STATE], price=time.price, gpu_time=time.gpu_time)
        for time, values in _included(times, columns, query)
    ]
    sets = [
        LineJobs(labels=_labels(values, query), price=found.price, jobs=found.jobs)
        for found, values in _included(jobs, jobs_columns, query)
    ]
    return cells, sets


def read_allocated(reader: LedgerReader, query: ReportQuery) -> Iterator[Cell]:
    """The allocated time of the query's period, without its jobs. Raises: LedgerError."""
    if query.window.start_us >= query.window.end_us:
        return
    columns = _columns(query, (_STATE,))
    times = reader.allocated(query.window, _stored(columns), cuts=query.periods.cuts)
    for time, values in _included(times, columns, query):
        yield Cell(labels=_labels(values, query), state=values[_STATE], price=time.price, gpu_time=time.gpu_time)


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
            labels = _labels(values, query)
            found.append(Cell(labels=labels, state=each.state.value, price=each.price, gpu_time=each.gpu_time))
    return found


def read_job_cells(reader: LedgerReader, query: ReportQuery) -> Iterator[JobCell]:
    """The allocated time of the query's period, by job. Raises: LedgerError."""
    if query.window.start_us >= query.window.end_us:
        return
    columns = _columns(query, (*JOB, *_KIND))
    times = reader.allocated(query.window, _stored(columns), cuts=query.periods.cuts)
    for time, values in _included(times, columns, query):
        yield JobCell(
            labels=_labels(values, query),
            job=tuple(values[column] for column in JOB),
            kind=tuple(values[column] for column in (*_KIND, _PURCHASE)),
            price=time.price,
            gpu_time=time.gpu_time,
        )


def read_usage(reader: LedgerReader, query: ReportQuery) -> Iterator[UsageCell]:
    """The measured usage of the query's period. Raises: LedgerError."""
    if query.window.start_us >= query.window.end_us:
        return
    columns = _columns(query, ())
    found = reader.measured(query.window, _stored(columns), cuts=query.periods.cuts)
    for usage, values in _included(found, columns, query):
        yield UsageCell(labels=_labels(values, query), price=usage.price, usage=usage)


def _columns(query: ReportQuery, more: Sequence[str]) -> tuple[str, ...]:
    """The columns to read, each once: those of the lines, of the filters, and `more`."""
    filtered = (each.column for each in query.filters)
    derived = {_PURCHASE, *query.times}
    return tuple(dict.fromkeys(column for column in (*query.columns, *filtered, *more) if column not in derived))


def _stored(columns: Iterable[str]) -> list[str]:
    return [_STORED.get(each, each) for each in columns]


def _included(
    found: Iterable[_Found], columns: Sequence[str], query: ReportQuery
) -> Iterator[tuple[_Found, Mapping[str, str]]]:
    """What the filters include, each with the values of all columns."""
    periods = query.periods
    for each in found:
        values = dict(zip(columns, each.labels, strict=True))
        values[_PURCHASE] = each.price.purchase.value if each.price else ""
        values |= periods.values[each.period]
        if query.includes(values):
            yield each, values


def _labels(values: Mapping[str, str], query: ReportQuery) -> tuple[str, ...]:
    return tuple(values[column] for column in query.columns)
