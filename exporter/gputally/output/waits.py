"""Waits for GPUs of a period."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from gputally.output.answer import Answer, Bar, Section
from gputally.output.scope import Scope, document_head
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


def waits_answer(report: WaitReport) -> Answer:
    """The tables of pending pods, and of those that did not exist, in each currency."""
    scope, columns = report.scope, report.query.columns
    rows = (row for each in report.found for row in each.rows)
    return Answer(
        title="Waits for GPUs",
        about=f"From {scope.about}",
        heading=f"Waits for GPUs from {scope.about}",
        sections=[_section(each, columns) for each in report.found] or [Section(notes=[scope.nothing])],
        notes=scope.notes,
        columns=(*columns, *_MEASURES, "currency"),
        records=((*row.labels, *(getattr(row, name) for name in _MEASURES), row.currency) for row in rows),
        document=lambda: _document(report),
    )


def _document(report: WaitReport) -> dict[str, Any]:
    rows = [_labels(row, report.query.columns) | _values(row) for each in report.found for row in each.rows]
    totals = [_values(each.total) for each in report.found]
    head = document_head(report.scope, version=VERSION)
    return head | {"by": report.query.by, "rows": rows, "totals": totals}


def _labels(row: WaitReportRow, columns: Sequence[str]) -> dict[str, Any]:
    return dict(zip(columns, row.labels, strict=True))


def _values(row: WaitReportRow) -> dict[str, Any]:
    return {name: value for name, value in structs.asdict(row).items() if name != "labels"}


def _section(found: CurrencyRows, columns: Sequence[str]) -> Section:
    """The columns for people; the last row is the total."""
    has = {name: bool(getattr(found.total, name)) for name in ("unpriced", "at_least")}
    has["cost"] = bool(found.total.currency)  # no price is no cost of 0.00
    has["highest_cost"] = found.total.highest_cost != found.total.cost
    shown = [name for name in _SHOWN if has.get(name, True)]
    total = ("total", *[""] * (len(columns) - 1))
    rows = [(row.labels, row) for row in found.rows] + [(total, found.total)]
    return Section(
        title=_CAPTIONS[found.total.pods],
        head=[*(column.replace("_", " ") for column in columns), *_heads(shown, found.total.currency)],
        rows=[[*labels, *(getattr(row, name) for name in shown)] for labels, row in rows],
        totals=1,
        bars=[Bar(row.share) for row in found.rows],
    )


def _heads(names: Sequence[str], currency: str) -> Iterator[str]:
    for name in names:
        yield f"cost {currency}".rstrip() if name == "cost" else _HEADS.get(name, name)
