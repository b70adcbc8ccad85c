"""Waits as people read them: decimals that add up to the total, and quantiles of how long pods waited."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NamedTuple

from msgspec import Struct

from gputally.model.units import COST_UNIT, GPU_HOUR, US_PER_SECOND
from gputally.report.calendar.periods import in_order_of_time
from gputally.report.rounded_rows import OTHERS
from gputally.report.rounding import PERCENT_PLACES, apportioned, apportioned_within, rounded
from gputally.report.waits.wait_lines import Labels, Waited, Waits

PENDING: Final = "pending"
UNCREATED: Final = "uncreated"
_AMOUNTS: Final = ("gpu_hours", "unpriced", "at_least", "cost", "highest_cost")


class WaitReportRow(Struct, frozen=True, kw_only=True):
    """A row; `pods` says whether they existed: `pending`, or `uncreated` if a quota, admission or queue held them back.

    `unpriced` are those of the GPU-hours whose pods select no node with a price, and `at_least` those of workloads
    that may have lacked more pods than are known. `cost` is at the lowest price of the nodes that the pods select, and
    `highest_cost` at the highest. `share` is in percent of the total cost, or of its GPU-hours where
    nothing is priced. `count` is the number of pods. The quantiles are of the time that a pod waited in the period for
    what the row stands for; of uncreated pods, each workload counts once. They and the count are None in the row that
    adds up others, which may have the same pods.
    """

    labels: Labels
    pods: str
    gpu_hours: Decimal
    unpriced: Decimal
    at_least: Decimal
    cost: Decimal
    highest_cost: Decimal
    share: Decimal
    count: int | None
    p50_seconds: int | None
    p90_seconds: int | None
    max_seconds: int | None
    currency: str


class WaitRows(NamedTuple):
    """The rows of pending or uncreated pods in one currency, and their total."""

    rows: tuple[WaitReportRow, ...]
    total: WaitReportRow


class _WaitLine(NamedTuple):
    """One line in one currency, in GPU-hours and units of the currency."""

    labels: Labels
    gpu_hours: Fraction
    unpriced: Fraction
    at_least: Fraction
    cost: Fraction
    highest_cost: Fraction
    waited: Waited | None


def wait_rows(found: Waits, *, places: int, top: int | None, time_columns: Sequence[int] = ()) -> list[WaitRows]:
    """The rows by currency; time without a price belongs to the only currency, or has rows of its own.

    The rows with the highest cost come first, in the order of time if there are columns of it; those beyond the `top`
    ones are added up in one. Amounts have `places` decimals.
    """
    known = sorted(found.total.cost)
    result = []
    for currency in known if len(known) == 1 else sorted(found.total.time):
        has_unpriced = len(known) == 1 or currency == ""
        lines = [_line(labels, each, currency, has_unpriced=has_unpriced) for labels, each in found.lines.items()]
        lines = sorted(
            (each for each in lines if each.gpu_hours), key=lambda each: (-each.cost, -each.gpu_hours, each.labels)
        )
        shown = _shown(lines, top, time_columns)
        total = _line((), found.total, currency, has_unpriced=has_unpriced)
        result.append(_rounded(shown, total, currency, PENDING if found.is_created else UNCREATED, places))
    return result


def _line(labels: Labels, waited: Waited, currency: str, *, has_unpriced: bool) -> _WaitLine:
    unpriced = waited.time.get("", 0) if has_unpriced else 0
    time = (waited.time.get(currency, 0) if currency else 0) + unpriced
    at_least = waited.at_least if has_unpriced else 0
    amounts = [Fraction(each, GPU_HOUR) for each in (time, unpriced, at_least)]
    costs = [Fraction(each.get(currency, 0), COST_UNIT) for each in (waited.cost, waited.highest)]
    return _WaitLine._make((labels, *amounts, *costs, waited))


def _shown(lines: Sequence[_WaitLine], top: int | None, time_columns: Sequence[int]) -> list[_WaitLine]:
    first, rest = list(lines[:top]), lines[top:] if top is not None else ()
    if time_columns:
        first.sort(key=lambda each: [in_order_of_time(each.labels[column]) for column in time_columns])
    if rest:
        amounts = (sum((getattr(each, name) for each in rest), Fraction()) for name in _AMOUNTS)
        first.append(_WaitLine._make(((OTHERS,) * len(rest[0].labels), *amounts, None)))
    return first


def _rounded(lines: Sequence[_WaitLine], total: _WaitLine, currency: str, pods: str, places: int) -> WaitRows:
    """The amounts of the rows add up to those of the total."""
    base = "cost" if total.cost else "gpu_hours"
    whole, every = getattr(total, base), (*lines, total)
    columns = _amounts(every, places)
    shares = [100 * getattr(each, base) / whole if whole else Fraction() for each in every]
    columns["share"] = _decimals(shares, PERCENT_PLACES)
    rows = []
    for place, each in enumerate(every):
        values: dict[str, Any] = {name: column[place] for name, column in columns.items()} | _durations(each.waited)
        rows.append(WaitReportRow(labels=each.labels, pods=pods, currency=currency, **values))
    return WaitRows(tuple(rows[:-1]), rows[-1])


def _amounts(every: Sequence[_WaitLine], places: int) -> dict[str, list[Decimal]]:
    """The rounded amounts of the lines and, last, of their total: parts within GPU-hours, no cost above the highest."""
    found = {name: _decimals([getattr(each, name) for each in every], places) for name in ("gpu_hours", "cost")}
    limits = [int(each.scaleb(places)) for each in found["gpu_hours"]]
    for name in ("unpriced", "at_least"):
        found[name] = _decimals([getattr(each, name) for each in every], places, limits)
    more = _decimals([each.highest_cost - each.cost for each in every], places)
    return found | {"highest_cost": [low + extra for low, extra in zip(found["cost"], more, strict=True)]}


def _decimals(amounts: Sequence[Fraction], places: int, limits: Sequence[int] | None = None) -> list[Decimal]:
    """All but the last one add up to it."""
    *parts, total = (each * 10**places for each in amounts)
    whole = rounded(total)
    found = apportioned_within(parts, total=whole, limits=limits[:-1]) if limits else apportioned(parts, total=whole)
    return [Decimal(each).scaleb(-places) for each in (*found, whole)]


def _durations(waited: Waited | None) -> dict[str, Any]:
    if waited is None or not waited.spans:
        return dict.fromkeys(("count", "p50_seconds", "p90_seconds", "max_seconds"))
    spans = sorted(waited.spans)
    of = {f"p{percent}_seconds": spans[-(-len(spans) * percent // 100) - 1] for percent in (50, 90)}
    of["max_seconds"] = spans[-1]
    return {"count": waited.pods} | {name: rounded(Fraction(us, US_PER_SECOND)) for name, us in of.items()}
