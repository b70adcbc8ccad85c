"""Writes waterfalls: tables with bars, Markdown, HTML, CSV and JSON."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TextIO

from msgspec import Struct, structs

from gputally.formatting.html_pages import HtmlTable, tables_page
from gputally.formatting.tables import title, write_rows, write_table
from gputally.output.report import write_heading, write_json
from gputally.output.scope import Scope, write_notes
from gputally.reports.waterfall import CAPACITY
from gputally.reports.waterfall_rows import WaterfallRow, WaterfallRows, bars, name_of

WHOLE: Final = "(all)"
"""Every label of the rows of the whole."""
_BAR: Final = 24
_MEASURES: Final = ("gpu_hours", "unpriced", "cost", "share")
_SUMMARY: Final = ("price_differences", "billed", "gpu_hour_price", "useful_gpu_hour_price")


class WaterfallReport(Struct, frozen=True, kw_only=True):
    """Waterfalls to print."""

    scope: Scope
    found: Sequence[WaterfallRows]


def write_waterfall(file: TextIO, report: WaterfallReport, *, output: str) -> None:
    """Write waterfalls; formats for people leave out differences of 0."""
    scope, columns = report.scope, report.scope.query.columns
    if output == "json":
        rows = [_labels(each, columns) | row for each in report.found for row in _records(each)]
        totals = [_labels(each, columns) | _summary(each) for each in report.found]
        write_json(file, scope, rows=rows, totals=totals)
    elif output == "csv":
        head = (*columns, "step", "cause", *_MEASURES, "currency")
        cells = (_labels(each, columns) | row for each in report.found for row in _records(each))
        write_rows(file, head, (tuple(row[name] for name in head) for row in cells), output="csv")
    elif output == "html":
        about = f"From {scope.about}"
        tables = _html_tables(report)
        file.write(tables_page(title="GPU cost, from capacity to use", about=about, tables=tables, notes=scope.notes))
    else:
        write_heading(file, scope.about, output)
        for each in report.found:
            _write_one(file, each, columns, output)
        write_notes(file, scope)


def _labels(each: WaterfallRows, columns: Sequence[str]) -> dict[str, Any]:
    return dict(zip(columns, each.labels or (WHOLE,) * len(columns), strict=True))


def _records(each: WaterfallRows) -> Iterator[dict[str, Any]]:
    """The rows of a waterfall, then what leads from the cost of the allocated step to the bill."""
    for row in each.rows:
        yield structs.asdict(row) | {"currency": each.currency}
    for cause, cost in (("price_differences", each.price_differences), ("", each.billed)):
        yield dict.fromkeys(_MEASURES) | {"step": "billed", "cause": cause, "cost": cost, "currency": each.currency}


def _summary(each: WaterfallRows) -> dict[str, Any]:
    return {name: getattr(each, name) for name in _SUMMARY} | {"currency": each.currency}


def _write_one(file: TextIO, each: WaterfallRows, columns: Sequence[str], output: str) -> None:
    if caption := _caption(each, columns):
        file.write(f"{title(caption, output)}\n\n")
    rows = _shown(each)
    head, cells = _cells(each, rows, output)
    if output == "table":
        head.append("")
        for line, bar, row in zip(cells, bars((row.cause, row.share) for row in rows), rows, strict=True):
            begin, end = (round(_BAR * at / 100) for at in (bar.begin, bar.begin + bar.length))
            line.append(" " * begin + ("░" if row.cause else "█") * (end - begin))
    write_table(file, head, cells, output=output)
    file.write(f"\n{_note(each)}\n\n")


def _html_tables(report: WaterfallReport) -> Iterator[HtmlTable]:
    for each in report.found:
        rows = _shown(each)
        drawn = list(bars((row.cause, row.share) for row in rows))
        yield HtmlTable(
            *_cells(each, rows, "html"),
            shares=[bar.length for bar in drawn],
            offsets=[bar.begin for bar in drawn],
            caption=_caption(each, report.scope.query.columns),
            note=_note(each),
        )


def _caption(each: WaterfallRows, columns: Sequence[str]) -> str:
    return ", ".join(f"{name} {label}" for name, label in zip(columns, each.labels or (), strict=False))


def _shown(each: WaterfallRows) -> list[WaterfallRow]:
    return [row for row in each.rows if not row.cause or row.gpu_hours or row.cost]


def _cells(each: WaterfallRows, rows: Sequence[WaterfallRow], output: str) -> tuple[list[str], list[list[object]]]:
    """The head and the rows of a table for people."""
    measures = [name for name in _MEASURES if name != "unpriced" or any(row.unpriced for row in rows)]
    heads = {"gpu_hours": "GPU-hours", "cost": f"cost {each.currency}".rstrip(), "share": "share %"}
    indent = "  " if output == "table" else ""
    names = (f"{indent if row.cause else ''}{name_of(row.step, row.cause)}" for row in rows)
    cells = [[name, *(getattr(row, field) for field in measures)] for name, row in zip(names, rows, strict=True)]
    return ["step", *(heads.get(name, name) for name in measures)], cells


def _note(each: WaterfallRows) -> str:
    """The prices of a GPU-hour, and how the bill differs."""
    of = "of capacity" if each.rows[0].step == CAPACITY else "allocated"
    if each.gpu_hour_price is None:
        return "Nothing of it has a price."
    useful = f"{each.useful_gpu_hour_price} {each.currency}" if each.useful_gpu_hour_price else "none"
    unmeasured = any(row.cause == "unmeasured" and row.gpu_hours for row in each.rows)
    lost = " What agents did not measure counts as lost." if unmeasured else ""
    return (
        f"A GPU-hour {of}: {each.gpu_hour_price} {each.currency}. A useful one, in jobs that succeeded: {useful}."
        f"{lost}\n"
        f"Billed for what was allocated: {each.billed} {each.currency}; "
        f"{each.price_differences:+} by tier multipliers, other prices, and GPU-hours without one."
    )
