"""Closed periods, and their invoices."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from msgspec import Struct

from gputally.formatting.times import instant
from gputally.ledger.closed_period import BrokenChain, ClosedLine, ClosedPeriod
from gputally.model.units import COST_UNIT, GPU_HOUR, to_datetime
from gputally.output.answer import Answer, Bar, Section
from gputally.process.clock import zone_named
from gputally.reports.bill_rows import BillRow, BillRows, RowChoice, rows_of
from gputally.reports.closing import VERSION, document_of, header_of, invoice_of
from gputally.reports.rounding import decimal_of

_LISTED: Final = ("period", "closed", "GPU-hours", "cost", "corrections", "price book", "hash", "verified")
_MEASURES: Final = ("gpu_hours", "unpriced", "cost", "share")
_HEADS: Final = {"gpu_hours": "GPU-hours", "share": "share %"}
_SHOWN_DIGITS: Final = 12
"""How many digits of a digest people see."""


class Invoice(Struct, frozen=True, kw_only=True):
    """A closed period to print by the dimensions `by`, amounts with `places` decimals; `closed` are all of them."""

    period: ClosedPeriod
    closed: Sequence[ClosedPeriod]
    by: tuple[str, ...]
    places: int


def list_answer(closed: Sequence[ClosedPeriod], broken: BrokenChain | None, *, places: int) -> Answer:
    """All closed periods; those from the first one that was changed on are not verified."""
    rows = [
        [*_listed_cells(each, places), "no" if broken and each.number >= broken.number else "yes"] for each in closed
    ]
    head = {"version": VERSION, "verified": broken is None, "problem": broken.text if broken else None}
    return Answer(
        title="Closed periods",
        about=broken.text if broken else "Their hashes are verified.",
        sections=[Section(head=_LISTED, rows=rows)],
        columns=_LISTED,
        records=rows,
        document=lambda: head | {"periods": [_listed(each, places) for each in closed]},
    )


def _listed(period: ClosedPeriod, places: int) -> dict[str, Any]:
    own, corrections = _split(period)
    return header_of(period) | {
        "gpu_hours": _hours(own, places),
        "cost": _costs(own, places),
        "correction_gpu_hours": _hours(corrections, places),
        "correction_cost": _costs(corrections, places),
    }


def _listed_cells(period: ClosedPeriod, places: int) -> list[object]:
    own, corrections = _split(period)
    return [
        *(period.name, instant(to_datetime(period.closed_us)), _hours(own, places)),
        *(_amounts(_costs(own, places)), _amounts(_costs(corrections, places))),
        *(period.price_book[:_SHOWN_DIGITS], period.hash[:_SHOWN_DIGITS]),
    ]


def _split(period: ClosedPeriod) -> tuple[list[ClosedLine], list[ClosedLine]]:
    """The period's own lines, and the corrections of earlier periods."""
    own = [line for line in period.lines if line.of == period.number]
    return own, [line for line in period.lines if line.of != period.number]


def _hours(lines: Iterable[ClosedLine], places: int) -> Decimal:
    return decimal_of(Fraction(sum(line.gpu_time for line in lines), GPU_HOUR), places)


def _costs(lines: Iterable[ClosedLine], places: int) -> dict[str, Decimal]:
    """The cost by currency."""
    sums: dict[str, int] = {}
    for price, gpu_time in ((line.key.price, line.gpu_time) for line in lines):
        if price:
            sums[price.currency] = sums.get(price.currency, 0) + price.cost(gpu_time)
    return {currency: decimal_of(Fraction(cost, COST_UNIT), places) for currency, cost in sorted(sums.items())}


def _amounts(costs: Mapping[str, Decimal]) -> str:
    return ", ".join(f"{amount} {currency}" for currency, amount in costs.items())


def invoice_answer(invoice: Invoice) -> Answer:
    """The invoice of a period, with one table for each currency."""
    period, columns = invoice.period, ("period", *invoice.by)
    found = rows_of(invoice_of(period, invoice.closed, invoice.by), RowChoice(invoice.places))
    rows = [row for each in found for row in each.rows]
    start, end = (to_datetime(us).astimezone(zone_named(period.zone)) for us in (period.start_us, period.end_us))
    state = f"closed {instant(to_datetime(period.closed_us))}, hash {period.hash}" if period.hash else "not closed yet"
    days = f"{start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S %Z}"
    return Answer(
        title=f"Period {period.name}",
        about=f"{days}, {state}",
        heading=f"Period {period.name}, {state}",
        sections=[Section(notes=[days]), *(_section(each, columns) for each in found)],
        columns=(*columns, *_MEASURES, "currency"),
        records=((*row.labels, *_cells(row), row.currency) for row in rows),
        document=lambda: (
            document_of(period)
            | {
                "rows": [dict(zip(columns, row.labels, strict=True)) | _values(row) for row in rows],
                "totals": [_values(each.total) for each in found],
            }
        ),
    )


def _section(found: BillRows, columns: Sequence[str]) -> Section:
    head = [*columns, *(_head(name, found.total.currency) for name in _MEASURES)]
    total = ["total", *[""] * (len(columns) - 1), *_cells(found.total)]
    rows = [*([*row.labels, *_cells(row)] for row in found.rows), total]
    return Section(head=head, rows=rows, totals=1, bars=[Bar(row.share) for row in found.rows])


def _head(name: str, currency: str) -> str:
    text = _HEADS.get(name, name)
    return f"{text} {currency}".rstrip() if name == "cost" else text


def _cells(row: BillRow) -> list[object]:
    return [getattr(row, name) for name in _MEASURES]


def _values(row: BillRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in (*_MEASURES, "currency")}
