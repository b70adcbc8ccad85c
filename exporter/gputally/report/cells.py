"""What a report adds up: allocated time by its lines, jobs, models, tiers and prices."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import AllocatedTime
from gputally.model.price import Price
from gputally.report.report_query import ReportQuery

_STORED: Final = {"pod": "name"}
"""Columns that the ledger calls otherwise."""
_PURCHASE: Final = "purchase"
"""The only column that is part of the price."""
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


def read_cells(reader: LedgerReader, query: ReportQuery) -> Iterator[Cell]:
    """The cells of the query's period. Raises: LedgerError."""
    if query.window.start_us >= query.window.end_us:
        return
    own, filtered = query.columns, (each.column for each in query.filters)
    columns = tuple(dict.fromkeys(column for column in (*own, *filtered, *_ALWAYS) if column != _PURCHASE))
    for time in reader.allocated(query.window, [_STORED.get(column, column) for column in columns]):
        values = dict(zip(columns, time.labels, strict=True)) | {_PURCHASE: _purchase(time)}
        if all(each.includes(values[each.column]) for each in query.filters):
            yield Cell(
                labels=tuple(values[column] for column in own),
                job=tuple(values[column] for column in _JOB),
                kind=tuple(values[column] for column in (*_KIND, _PURCHASE)),
                state=values["state"],
                price=time.price,
                gpu_time=time.gpu_time,
            )


def _purchase(time: AllocatedTime) -> str:
    return time.price.purchase.value if time.price else ""
