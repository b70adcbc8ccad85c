"""Shows closed periods and their invoices as tables, Markdown, CSV and JSON."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TextIO

from msgspec import Struct

from gputally.formatting.tables import write_document, write_rows, write_table
from gputally.formatting.times import instant
from gputally.ledger.closed_period import BrokenChain, ClosedLine, ClosedPeriod
from gputally.model.units import COST_UNIT, GPU_HOUR, to_datetime
from gputally.process.clock import zone_named
from gputally.reports.bill_rows import BillRow, RowChoice, rows_of
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


def write_list(
    file: TextIO, closed: Sequence[ClosedPeriod], broken: BrokenChain | None, *, output: str, places: int
) -> None:
    """Write all closed periods; those from the first one that was changed on are not verified."""
    if output == "json":
        found = [_listed(each, places) for each in closed]
        problem = broken.text if broken else None
        write_document(file, {"version": VERSION, "verified": broken is None, "problem": problem, "periods": found})
        return
    rows = [
        [*_listed_cells(each, places), "no" if broken and each.number >= broken.number else "yes"] for each in closed
    ]
    if output == "markdown" and rows:
        write_table(file, _LISTED, rows, output=output)
    else:
        write_rows(file, _LISTED, rows, output="csv" if output == "csv" else "table")


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


def write_invoice(file: TextIO, invoice: Invoice, *, output: str) -> None:
    """Write an invoice. CSV has no totals, so that its columns can be summed."""
    period, columns = invoice.period, ("period", *invoice.by)
    found = rows_of(invoice_of(period, invoice.closed, invoice.by), RowChoice(invoice.places))
    if output == "json":
        rows = [dict(zip(columns, row.labels, strict=True)) | _values(row) for each in found for row in each.rows]
        write_document(file, document_of(period) | {"rows": rows, "totals": [_values(each.total) for each in found]})
    elif output == "csv":
        cells = ((*row.labels, *_cells(row), row.currency) for each in found for row in each.rows)
        write_rows(file, (*columns, *_MEASURES, "currency"), cells, output="csv")
    else:
        _write_heading(file, period, is_markdown=output == "markdown")
        for each in found:
            head = [*columns, *(_head(name, each.total.currency) for name in _MEASURES)]
            total = ["total", *[""] * (len(columns) - 1), *_cells(each.total)]
            write_table(file, head, [*([*row.labels, *_cells(row)] for row in each.rows), total], output=output)


def _write_heading(file: TextIO, period: ClosedPeriod, *, is_markdown: bool) -> None:
    start, end = (to_datetime(us).astimezone(zone_named(period.zone)) for us in (period.start_us, period.end_us))
    state = f"closed {instant(to_datetime(period.closed_us))}, hash {period.hash}" if period.hash else "not closed yet"
    title = f"{'# ' if is_markdown else ''}Period {period.name}, {state}"
    file.write(f"{title}\n\n{start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S %Z}\n\n")


def _head(name: str, currency: str) -> str:
    text = _HEADS.get(name, name)
    return f"{text} {currency}".rstrip() if name == "cost" else text


def _cells(row: BillRow) -> list[object]:
    return [getattr(row, name) for name in _MEASURES]


def _values(row: BillRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in (*_MEASURES, "currency")}
