"""Waterfalls, from capacity to what was used."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from gputally.output.answer import Answer, Bar, Section
from gputally.output.report import document_of
from gputally.output.scope import Scope
from gputally.reports.waterfall import CAPACITY
from gputally.reports.waterfall_rows import WaterfallRows, bars, name_of

WHOLE: Final = "(all)"
"""Every label of the rows of the whole."""
_BAR: Final = 24
_MEASURES: Final = ("gpu_hours", "unpriced", "cost", "share")
_SUMMARY: Final = ("price_differences", "billed", "gpu_hour_price", "useful_gpu_hour_price")


class WaterfallReport(Struct, frozen=True, kw_only=True):
    """Waterfalls to print."""

    scope: Scope
    found: Sequence[WaterfallRows]


def waterfall_answer(report: WaterfallReport) -> Answer:
    """One table for the whole and for each line; people do not see differences of 0."""
    scope, columns = report.scope, report.scope.query.columns
    head = (*columns, "step", "cause", *_MEASURES, "currency")
    rows = (_labels(each, columns) | row for each in report.found for row in _records(each))
    return Answer(
        title="GPU cost, from capacity to use",
        about=f"From {scope.about}",
        heading=f"GPU cost from {scope.about}",
        sections=(_section(each, columns) for each in report.found),
        notes=scope.notes,
        columns=head,
        records=(tuple(row[name] for name in head) for row in rows),
        document=lambda: document_of(
            scope,
            rows=list(rows),
            totals=[_labels(each, columns) | _summary(each) for each in report.found],
        ),
    )


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


def _section(each: WaterfallRows, columns: Sequence[str]) -> Section:
    """The columns for people, with bars from what was there before to what is left."""
    rows = [row for row in each.rows if not row.cause or row.gpu_hours or row.cost]
    measures = [name for name in _MEASURES if name != "unpriced" or any(row.unpriced for row in rows)]
    heads = {"gpu_hours": "GPU-hours", "cost": f"cost {each.currency}".rstrip(), "share": "share %"}
    drawn = bars((row.cause, row.share) for row in rows)
    return Section(
        title=", ".join(f"{name} {label}" for name, label in zip(columns, each.labels or (), strict=False)),
        head=["step", *(heads.get(name, name) for name in measures)],
        rows=[[name_of(row.step, row.cause), *(getattr(row, field) for field in measures)] for row in rows],
        bars=[Bar(bar.length, bar.begin, bool(row.cause)) for bar, row in zip(drawn, rows, strict=True)],
        bar_width=_BAR,
        notes=[_note(each)],
    )


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
