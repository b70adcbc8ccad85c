"""What a period costs at two price books."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct, structs

from gputally.accounting.prices.book import DIGEST_PREFIX, PriceBook
from gputally.ledger.records import Window
from gputally.model.printable import printable
from gputally.model.units import GPU_HOUR
from gputally.output.answer import Answer, Section
from gputally.output.scope import Scope, times
from gputally.reports.bill_rows import RowChoice
from gputally.reports.price_comparison import ComparisonRow, ComparisonRows, PriceComparison, comparison_rows
from gputally.reports.query import ReportQuery
from gputally.reports.rerating import Books
from gputally.reports.rounding import RunningSums

VERSION: Final = 1
"""Raised when a field of the JSON is removed or changes its meaning; new fields do not change it."""
_FIELDS: Final = tuple(name for name in ComparisonRow.__struct_fields__ if name != "labels")
_HEADS: Final = {"gpu_hours": "GPU-hours", "change": "change %"}
_SHOWN: Final = tuple(name for name in _FIELDS if name not in ("currency", "currency_after"))
_DIFFERENCES: Final = ("difference", "change")
_ALWAYS: Final = ("gpu_hours", "before", "after")
"""The columns of tables for people, of which the others are omitted if they are 0 or unknown everywhere."""


class RerateReport(Struct, frozen=True, kw_only=True):
    """A comparison to print, amounts with `places` decimals; lines beyond the `top` ones are added up."""

    scope: Scope
    books: Books
    comparison: PriceComparison
    top: int | None
    places: int


def comparison_answer(report: RerateReport) -> Answer:
    """One table for each currency before."""
    scope, books, query = report.scope, report.books, report.scope.query
    found = comparison_rows(report.comparison, RowChoice(report.places, report.top, query.time_columns))
    names = f"before: {printable(_name(books.before))}\nafter: {printable(f'{_name(books.after)}{_purchase(books)}')}"
    return Answer(
        title="GPU cost at other prices",
        about=f"From {scope.about}",
        heading=f"GPU cost from {scope.about}",
        sections=[Section(notes=[names]), *(_section(query, each) for each in found)],
        columns=(*query.columns, *_FIELDS),
        records=((*row.labels, *_values(row, _FIELDS)) for each in found for row in each.rows),
        document=lambda: _document_of(report, found),
    )


def hours(gpu_time: int) -> str:
    """GPU-time for people."""
    return f"{RunningSums(GPU_HOUR, 2).add(gpu_time):,f}"


def _section(query: ReportQuery, found: ComparisonRows) -> Section:
    total = found.total
    shown = [name for name in _SHOWN if name in _ALWAYS or _matters(name, found)]
    labels = [(*row.labels,) for row in found.rows] + [("total", *[""] * (len(query.columns) - 1))]
    rows = [[*names, *_values(row, shown)] for names, row in zip(labels, (*found.rows, total), strict=True)]
    return Section(head=[*query.columns, *(_head(name, total) for name in shown)], rows=rows, totals=1)


def _matters(name: str, found: ComparisonRows) -> bool:
    """A difference of 0 does; nothing unpriced does not."""
    values = [getattr(row, name) for row in (*found.rows, found.total)]
    return any(value is not None for value in values) if name in _DIFFERENCES else any(values)


def _head(name: str, total: ComparisonRow) -> str:
    text = _HEADS.get(name, name.replace("_", " "))
    currency = {"before": total.currency, "after": total.currency_after}.get(name, "")
    return f"{text} {currency}".rstrip()


def _values(row: ComparisonRow, names: Iterable[str]) -> list[object]:
    return [getattr(row, name) for name in names]


def _name(book: PriceBook | None) -> str:
    """A price book for people."""
    return f"{book.name} (price book {book.digest[:DIGEST_PREFIX]})" if book else "the prices that the ledger recorded"


def _purchase(books: Books) -> str:
    return f", spot nodes as {books.instead_of_spot.value}" if books.instead_of_spot else ""


def _document_of(report: RerateReport, found: Sequence[ComparisonRows]) -> dict[str, Any]:
    scope, comparison = report.scope, report.comparison
    columns, zone = scope.query.columns, scope.query.calendar.zone
    return {
        "version": VERSION,
        "cluster": scope.state.cluster,
        "window": times(scope.query.window, zone),
        "accounted": times(Window(scope.state.accounting_start_us, scope.state.accounted_us), zone),
        "cut_off": scope.cut_off,
        "by": scope.query.by,
        "where": {each.column: each.globs for each in scope.query.filters},
        "before": _book(report.books.before),
        "after": _book(report.books.after),
        "purchase": report.books.instead_of_spot,
        "rows": [dict(zip(columns, row.labels, strict=True)) | _document(row) for each in found for row in each.rows],
        "totals": [_document(each.total) for each in found],
        "unobserved_nodes_gpu_hours": _hours(comparison.guessed, report.places),
        "changed_days_gpu_hours": _hours(comparison.changed_days, report.places),
        "unknown_labels": {key: _hours(time, report.places) for key, time in comparison.unknown_keys.items()},
    }


def _document(row: ComparisonRow) -> dict[str, Any]:
    return {name: value for name, value in structs.asdict(row).items() if name != "labels"}


def _book(book: PriceBook | None) -> dict[str, str] | None:
    """A price book in a document; None for the prices that the ledger recorded."""
    return {"name": book.name, "digest": book.digest, "currency": book.currency} if book else None


def _hours(gpu_time: int, places: int) -> Decimal:
    return RunningSums(GPU_HOUR, places).add(gpu_time)
