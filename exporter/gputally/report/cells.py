"""What a report adds up: allocated time by its lines, jobs, models, tiers and prices."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import AllocatedTime, MeasuredTime
from gputally.model.price import Price
from gputally.report.periods import Periods
from gputally.report.report_query import ReportQuery

_STORED: Final = {"pod": "name"}
"""Columns that the ledger calls otherwise."""
_PURCHASE: Final = "purchase"
"""The column that is part of the price."""
_JOB: Final = ("namespace", "job_kind", "job")
_KIND: Final = ("gpu_model", "tier")
_ALWAYS: Final = (*_JOB, *_KIND, "state")


class Cell(NamedTuple):
    """Allocated time (µs·µGPU) with the same labels, job, kind and price.

    `labels` are the values of the query's columns, `kind` is what else affects the price: GPU model, tier and purchase
    option.
    """

    labels: tuple[str, ...]
    job: tuple[str, ...]
    kind: tuple[str, ...]
    state: str
    price: Price | None
    gpu_time: int

    @property
    def currency(self) -> str:
        """The currency of its cost; empty if it is unpriced."""
        return self.price.currency if self.price else ""

    @property
    def cost(self) -> int:
        """The exact cost, see `COST_UNIT`; 0 if it is unpriced."""
        return self.price.cost(self.gpu_time) if self.price else 0


class UsageCell(NamedTuple):
    """What agents measured for one line at one price."""

    labels: tuple[str, ...]
    usage: MeasuredTime

    @property
    def currency(self) -> str:
        """The currency of its cost; empty if it is unpriced."""
        return self.usage.price.currency if self.usage.price else ""

    @property
    def idle_cost(self) -> int:
        """The cost of the idle time, see `COST_UNIT`; 0 if it is unpriced."""
        return self.usage.price.cost(self.usage.idle) if self.usage.price else 0


def read_cells(reader: LedgerReader, query: ReportQuery) -> Iterator[Cell]:
    """The allocated time of the query's period. Raises: LedgerError."""
    if query.window.start_us >= query.window.end_us:
        return
    own, columns, periods = query.columns, _columns(query, _ALWAYS), query.periods
    found = reader.allocated(query.window, [_STORED.get(each, each) for each in columns], cuts=periods.cuts)
    for time in found:
        values = dict(zip(columns, time.labels, strict=True)) | _derived(time, query, periods)
        if query.includes(values):
            yield Cell(
                labels=tuple(values[column] for column in own),
                job=tuple(values[column] for column in _JOB),
                kind=tuple(values[column] for column in (*_KIND, _PURCHASE)),
                state=values["state"],
                price=time.price,
                gpu_time=time.gpu_time,
            )


def read_usage(reader: LedgerReader, query: ReportQuery) -> Iterator[UsageCell]:
    """The measured usage of the query's period. Raises: LedgerError."""
    if query.window.start_us >= query.window.end_us:
        return
    own, columns, periods = query.columns, _columns(query, ()), query.periods
    found = reader.measured(query.window, [_STORED.get(each, each) for each in columns], cuts=periods.cuts)
    for usage in found:
        values = dict(zip(columns, usage.labels, strict=True)) | _derived(usage, query, periods)
        if query.includes(values):
            yield UsageCell(tuple(values[column] for column in own), usage)


def _columns(query: ReportQuery, more: Sequence[str]) -> tuple[str, ...]:
    """The columns to read, each once: those of the lines, of the filters, and `more`."""
    filtered = (each.column for each in query.filters)
    derived = {_PURCHASE, query.time}
    return tuple(dict.fromkeys(column for column in (*query.columns, *filtered, *more) if column not in derived))


def _derived(found: AllocatedTime | MeasuredTime, query: ReportQuery, periods: Periods) -> dict[str, str]:
    """The values of the columns that are not labels in the ledger."""
    values = {_PURCHASE: found.price.purchase.value if found.price else ""}
    return values | {query.time: periods.labels[found.period]} if query.time else values
