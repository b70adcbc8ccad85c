"""Reports waits for GPUs: tables for people, Markdown, HTML, CSV and JSON."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TextIO

from msgspec import Struct, structs

from gputally.formatting.html_pages import HtmlTable, tables_page
from gputally.formatting.tables import title, write_document, write_rows, write_table
from gputally.output.scope import Scope, document_head, write_notes
from gputally.reports.waits import PENDING, UNCREATED, CurrencyRows, WaitQuery, WaitReportRow

VERSION: Final = 1
"""Raised when a field of the JSON is removed or changes its meaning; new fields do not change it."""
_MEASURES: Final = tuple(name for name in WaitReportRow.__struct_fields__ if name not in ("labels", "currency"))
_QUANTILES: Final = ("p50_seconds", "p90_seconds", "max_seconds")
_SHOWN: Final = ("gpu_hours", "unpriced", "at_least", "cost", "highest_cost", "share", "count", *_QUANTILES)
_HEADS: Final = {
    "gpu_hours": "GPU-hours",
    "at_least": "at least",
    "highest_cost": "up to",
    "share": "share %",
    "count": "pods",
    "p50_seconds": "p50 s",
    "p90_seconds": "p90 s",
    "max_seconds": "max s",
}
_CAPTIONS: Final = {
    PENDING: "Pending pods",
    UNCREATED: "Pods that did not exist, as a quota, admission or a queue held them back",
}


class WaitReport(Struct, frozen=True, kw_only=True):
    """Waits to print."""

    scope: Scope
    query: WaitQuery
    found: Sequence[CurrencyRows]


def write_waits(file: TextIO, report: WaitReport, *, output: str) -> None:
    """Write waits. CSV has no totals, so that its columns can be summed."""
    scope, columns = report.scope, report.query.columns
    if output == "json":
        write_document(file, _document(report))
    elif output == "csv":
        rows = (
            (*row.labels, *(getattr(row, name) for name in _MEASURES), row.currency)
            for each in report.found
            for row in each.rows
        )
        write_rows(file, (*columns, *_MEASURES, "currency"), rows, output="csv")
    elif output == "html":
        tables = (
            HtmlTable(*_table(each, columns), [row.share for row in each.rows], caption=_caption(each))
            for each in report.found
        )
        about = f"From {scope.about}"
        file.write(tables_page(title="Waits for GPUs", about=about, tables=tables, notes=scope.notes))
    else:
        _write_tables(file, report, f"Waits for GPUs from {scope.about}", output)


def _write_tables(file: TextIO, report: WaitReport, heading: str, output: str) -> None:
    file.write(f"{title(heading, output, level=1)}\n")
    if not report.found:
        file.write(f"\n{report.scope.nothing}\n")
    for each in report.found:
        file.write(f"\n{title(_caption(each), output)}\n\n")
        write_table(file, *_table(each, report.query.columns), output=output)
    write_notes(file, report.scope)


def _document(report: WaitReport) -> dict[str, Any]:
    rows = [_labels(row, report.query.columns) | _values(row) for each in report.found for row in each.rows]
    totals = [_values(each.total) for each in report.found]
    head = document_head(report.scope, version=VERSION)
    return head | {"by": report.query.by, "rows": rows, "totals": totals}


def _labels(row: WaitReportRow, columns: Sequence[str]) -> dict[str, Any]:
    return dict(zip(columns, row.labels, strict=True))


def _values(row: WaitReportRow) -> dict[str, Any]:
    return {name: value for name, value in structs.asdict(row).items() if name != "labels"}


def _caption(found: CurrencyRows) -> str:
    return _CAPTIONS[found.total.pods]


def _table(found: CurrencyRows, columns: Sequence[str]) -> tuple[list[str], list[list[object]]]:
    """The columns for people; the last row is the total."""
    has = {name: bool(getattr(found.total, name)) for name in ("unpriced", "at_least")}
    has["cost"] = bool(found.total.currency)  # no price is no cost of 0.00
    has["highest_cost"] = found.total.highest_cost != found.total.cost
    shown = [name for name in _SHOWN if has.get(name, True)]
    head = [*(column.replace("_", " ") for column in columns), *_heads(shown, found.total.currency)]
    total = ("total", *[""] * (len(columns) - 1))
    rows = [(row.labels, row) for row in found.rows] + [(total, found.total)]
    return head, [[*labels, *(getattr(row, name) for name in shown)] for labels, row in rows]


def _heads(names: Sequence[str], currency: str) -> Iterator[str]:
    for name in names:
        yield f"cost {currency}".rstrip() if name == "cost" else _HEADS.get(name, name)
