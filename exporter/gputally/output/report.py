"""Reports of GPU-hours and cost, and of their change."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TextIO

from msgspec import Struct, defstruct, structs

from gputally.formatting.csv_cells import AtMost, csv_line
from gputally.ledger.records import Window
from gputally.model.printable import printable
from gputally.model.units import GPU_HOUR, US_PER_SECOND
from gputally.output.answer import Answer, Bar, Section
from gputally.output.scope import Scope, times
from gputally.reports.bill import Bill
from gputally.reports.bill_rows import BillRow, BillRows, ChangeRow, RowChoice, change_rows, rows_of
from gputally.reports.cost_change import CostChange, length_note
from gputally.reports.focus import FocusRow
from gputally.reports.unbilled import SampledLine, most_unaccounted

VERSION: Final = 1
"""Raised when a field of the JSON is removed or changes its meaning; new fields do not change it."""
_BAR: Final = 12
MEASURES: Final = tuple(name for name in BillRow.__struct_fields__ if name not in ("labels", "currency"))
_CHANGES: Final = tuple(name for name in ChangeRow.__struct_fields__ if name not in ("labels", "currency"))
_HEADS: Final = {
    "gpu_hours": "GPU-hours",
    "share": "share %",
    "utilisation": "used %",
    "mean_wait_seconds": "wait s",
    "lost": "lost GPU-h",
}
_SHOWN: Final = (
    *("gpu_hours", "unpriced", "unobserved", "utilisation", "cost", "idle_cost", "lost", "lost_cost"),
    *("unallocated_cost", "share", "jobs"),
    *("mean_wait_seconds", "progress", "progress_unit", "cost_per_unit"),
)
"""The columns of tables for people, so that they fit a terminal. They omit those of the next lines without values."""
_OPTIONAL: Final = (
    *("unpriced", "unobserved", "utilisation", "idle_cost", "lost", "lost_cost", "unallocated_cost"),
    "mean_wait_seconds",
)
_LOST: Final = ("lost", "lost_cost")
_OF_JOBS: Final = ("progress", "progress_unit", "cost_per_unit")
"""Never in totals."""

Cells = Sequence[object]
_EMPTY_WITHOUT_PODS: Final = ("utilisation", "jobs", "pods", "mean_wait_seconds", *_OF_JOBS, "is_lost_upper_bound")
_TOTAL_OF_NOTHING: Final = BillRow(
    labels=(),
    currency="",
    **{name: Decimal("0.00") for name in MEASURES if name not in _EMPTY_WITHOUT_PODS},
    utilisation=None,
    jobs=0,
    pods=0,
    mean_wait_seconds=None,
    progress=None,
    progress_unit=None,
    cost_per_unit=None,
    is_lost_upper_bound=False,
)
_AMOUNTS: Final = tuple(each for each in BillRow.__struct_fields__ if each != "labels")
_ALL: Final = 99
"""Percent from which on all counts as measured: starts and ends of pods lie within the hours of agents."""
EMPTY: Final = (BillRows((), _TOTAL_OF_NOTHING),)
_MOST_SAMPLED: Final = 10
"""Lines that are printed, those with the largest possible error first."""


class BillReport(Struct, frozen=True, kw_only=True):
    """A bill to print, amounts with `places` decimals; lines beyond the `top` ones are added up."""

    scope: Scope
    bill: Bill
    top: int | None
    places: int


class ChangeReport(Struct, frozen=True, kw_only=True):
    """A comparison with the period `before` to print, see `BillReport`."""

    scope: Scope
    before: Window
    changes: Sequence[CostChange]
    top: int | None
    places: int


def bill_answer(report: BillReport) -> Answer:
    """One table for each currency."""
    query = report.scope.query
    found, columns = rows_of(report.bill, RowChoice(report.places, report.top, query.time_columns)), query.columns
    return Answer(
        title="GPU cost",
        about=f"From {report.scope.about}",
        heading=f"GPU cost from {report.scope.about}",
        sections=(
            structs.replace(bill_section(columns, each), notes=[*notes_of(each.total, report.scope)])
            for each in found or EMPTY
        ),
        notes=report.scope.notes,
        columns=(*columns, *MEASURES, "currency"),
        records=((*row.labels, *amounts(row, MEASURES), row.currency) for each in found for row in each.rows),
        document=lambda: document_of(
            report.scope, rows=documents(columns, found), totals=[row_values(each.total) for each in found]
        ),
    )


def changes_answer(report: ChangeReport) -> Answer:
    """One table for each currency."""
    scope, columns = report.scope, report.scope.query.columns
    currencies = sorted({each.currency for each in report.changes})
    grouped = [[each for each in report.changes if each.currency == currency] for currency in currencies]
    found = [change_rows(changes, places=report.places, top=report.top) for changes in grouped]
    rows, about = [row for group in found for row in group[:-1]], scope.compared_to(report.before)
    return Answer(
        title="Change of GPU cost",
        about=f"From {about}",
        heading=f"GPU cost from {about}",
        sections=(_change_section(columns, group) for group in found),
        notes=_change_notes(report),
        columns=(*columns, *_CHANGES, "currency"),
        records=((*row.labels, *amounts(row, _CHANGES), row.currency) for row in rows),
        document=lambda: document_of(
            scope,
            rows=[dict(zip(columns, row.labels, strict=True)) | row_values(row) for row in rows],
            totals=[row_values(group[-1]) for group in found],
            before=report.before,
        ),
    )


def _change_notes(report: ChangeReport) -> list[str]:
    """What a reader must know of a comparison."""
    return [*filter(None, [length_note(report.scope.query.window, report.before)]), *report.scope.notes]


def _change_section(columns: Sequence[str], group: Sequence[ChangeRow]) -> Section:
    head = [*columns, *(name.replace("_", " ") for name in _CHANGES)]
    head[-len(_CHANGES)] += f" {group[0].currency}".rstrip()
    return Section(head=head, rows=[[*_named(row, columns), *amounts(row, _CHANGES)] for row in group], totals=1)


def notes_of(total: BillRow, scope: Scope) -> Iterator[str]:
    """What is not known: how much agents measured, unless it is all or nothing, what was lost, and what unobserved."""
    share = 100 * total.measured / total.gpu_hours if total.gpu_hours else Decimal()
    if 0 < share < _ALL:
        yield f"Agents measured {share:.1f} % of the GPU-hours: used and idle are known only of these."
    if total.lost:
        yield scope.lost_note
    if total.unobserved is None:
        yield "Unobserved GPU-hours are not known: the retention left only daily sums of a part of the period."


def bill_section(columns: Sequence[str], found: BillRows) -> Section:
    """The columns for people, with bars of the shares."""
    shown = [name for name in _SHOWN if _is_shown(name, found)]
    return Section(
        head=[*columns, *(_head(name, found.total.currency) for name in shown)],
        rows=[[*_named(row, columns), *_shown_amounts(row, shown)] for row in (*found.rows, found.total)],
        totals=1,
        bars=[Bar(row.share) for row in found.rows],
        bar_width=_BAR,
    )


def _is_shown(name: str, found: BillRows) -> bool:
    if name in _OF_JOBS:
        return any(getattr(row, name) is not None for row in found.rows)
    return name not in _OPTIONAL or bool(getattr(found.total, name))


def _head(name: str, currency: str) -> str:
    text = _HEADS.get(name, name.replace("_", " "))
    return f"{text} {currency}".rstrip() if name in ("cost", "cost_per_unit") else text


def _named(row: BillRow | ChangeRow, columns: Sequence[str]) -> Cells:
    """The labels of a row; those of a total say so."""
    return row.labels or ("total", *[""] * (len(columns) - 1))


def amounts(row: BillRow | ChangeRow, names: Iterable[str]) -> list[object]:
    """The named fields of a row."""
    return [getattr(row, name) for name in names]


def _shown_amounts(row: BillRow, names: Iterable[str]) -> list[object]:
    """The named fields of a row; upper bounds have their sign."""
    bounds = _LOST if row.is_lost_upper_bound else ()
    values = zip(names, amounts(row, names), strict=True)
    return [AtMost(value) if name in bounds and isinstance(value, Decimal) else value for name, value in values]


def documents(columns: Sequence[str], found: Sequence[BillRows]) -> list[Struct]:
    """The rows for JSON, without totals; a large report has many, and a struct takes a fifth of a dictionary."""
    document, amounts_of = defstruct("Row", (*columns, *_AMOUNTS), gc=False), attrgetter(*_AMOUNTS)
    return [document(*row.labels, *amounts_of(row)) for each in found for row in each.rows]


def row_values(row: BillRow | ChangeRow) -> dict[str, Any]:
    """A row for JSON, without labels."""
    values = structs.asdict(row)
    del values["labels"]
    return values


def document_of(
    scope: Scope, *, rows: Sequence[Struct | dict[str, Any]], totals: list[dict[str, Any]], before: Window | None = None
) -> dict[str, Any]:
    """The document for JSON, with the period that it is compared to."""
    return {
        "version": VERSION,
        "cluster": scope.state.cluster,
        "window": times(scope.query.window, scope.query.calendar.zone),
        "compared_to": times(before, scope.query.calendar.zone) if before else None,
        "accounted": times(
            Window(scope.state.accounting_start_us, scope.state.accounted_us), scope.query.calendar.zone
        ),
        "cut_off": scope.cut_off,
        "records_from": scope.records_from,
        "by": scope.query.by,
        "where": {each.column: each.globs for each in scope.query.filters},
        "unmatched": scope.unmatched,
        "rows": rows,
        "totals": totals,
        "unaccounted": None if scope.unaccounted is None else most_unaccounted(scope.unaccounted),
    }


def write_sampled(file: TextIO, lines: Sequence[SampledLine], *, source: str = "gputally") -> None:
    """Say what rests on ends that were not observed, by line of the report; nothing if nothing does."""
    if not lines:
        return
    total = SampledLine(
        labels=(),
        gpu_time=sum(line.gpu_time for line in lines),
        most=sum(line.most for line in lines),
        longest_us=max(line.longest_us for line in lines),
    )
    shown = lines[:_MOST_SAMPLED] if len(lines) > 1 else []
    file.write(f"{source}: {_sampled_amounts(total)}\n")
    file.writelines(f"  {printable(', '.join(line.labels))}: {_sampled_amounts(line, short=True)}\n" for line in shown)
    if (more := len(lines) - _MOST_SAMPLED) > 0:
        file.write(f"  and {more:,} more\n")


def _sampled_amounts(line: SampledLine, *, short: bool = False) -> str:
    about = "" if short else " are of pods whose end was not observed"
    hours, most, span_s = line.gpu_time / GPU_HOUR, line.most / GPU_HOUR, line.longest_us / US_PER_SECOND
    return (
        f"{hours:,.2f} GPU-hours{about}, at most {most:,.4f} GPU-hours are missing; ends are known to {span_s:,.3g} s"
    )


def write_focus(file: TextIO, rows: Iterator[FocusRow]) -> int:
    """Write the rows as CSV as they are read; returns their number. Without rows, the file is empty."""
    first = next(rows, None)
    if first is None:
        return 0
    file.write(csv_line([*first]))
    count = 0
    for row in chain((first,), rows):
        file.write(csv_line([row[column] for column in first]))
        count += 1
    return count
