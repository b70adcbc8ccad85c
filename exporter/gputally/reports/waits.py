"""Waits for GPUs over a period: their sums by any of their columns, and how long the pods waited."""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import PendingTime
from gputally.model.units import COST_UNIT, GPU_HOUR, US_PER_SECOND
from gputally.model.waits import NOBODY
from gputally.reports.bill_rows import OTHERS
from gputally.reports.choices import TIME_DIMENSIONS, WAIT_COLUMNS
from gputally.reports.query import ReportQuery
from gputally.reports.rounding import PERCENT_PLACES, apportioned_columns, column_of, rounded
from gputally.reports.time_dimensions import Periods, in_order_of_time, periods_of

OTHERS_TENANT: Final = "other"
"""Tenants that the reader may not see."""
Labels = tuple[str, ...]
PENDING: Final = "pending"
UNCREATED: Final = "uncreated"
_AMOUNTS: Final = ("gpu_hours", "unpriced", "at_least", "cost", "highest_cost")
_PARTS: Final = ("unpriced", "at_least")
"""Parts of the GPU-hours."""
_MORE: Final = "more"
"""The difference between the highest cost and the lowest."""


class WaitQuery(NamedTuple):
    """What to report: the period and the filters, and the dimensions of the lines.

    With `own_tenants`, occupying tenants other than the waiting one are not named.
    """

    scope: ReportQuery
    by: tuple[str, ...]
    own_tenants: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that identify a line, each once."""
        return tuple(dict.fromkeys(column for dimension in self.by for column in WAIT_COLUMNS[dimension]))


class LineSums(Struct, kw_only=True):
    """Waits of a line: GPU-time (µs·µGPU) and its lowest and `highest` cost by currency, "" for what has no price.

    `at_least` is the part, always without a price, of workloads that may have lacked more pods than are known.
    `spans` are how long each pod waited for it in the period, µs; of pods that do not exist, each workload. `pods` is
    their number, of a workload the most that it lacked at once.
    """

    time: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    cost: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    highest: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    at_least: int = 0
    spans: "array[int]" = field(default_factory=lambda: array("q"))
    pods: int = 0


class SumsByLabels(NamedTuple):
    """The lines by their labels, and all of them together: of pods, or of pods that do not exist."""

    is_created: bool
    lines: dict[Labels, LineSums]
    total: LineSums

    def line(self, labels: Labels) -> LineSums:
        """The line of these labels."""
        if (found := self.lines.get(labels)) is None:
            found = self.lines[labels] = LineSums()
        return found


def read_waits(reader: LedgerReader, query: WaitQuery) -> tuple[SumsByLabels, SumsByLabels]:
    """The waits of pods, and those for pods that do not exist. Raises: LedgerError."""
    found = SumsByLabels(True, {}, LineSums()), SumsByLabels(False, {}, LineSums())  # noqa: FBT003 - a field
    named = (*query.by, *(each.column for each in query.scope.filters))
    times = tuple(dict.fromkeys(each for each in named if each in TIME_DIMENSIONS))
    periods = periods_of(times, query.scope.window, query.scope.calendar)
    parts = reader.pending_times(query.scope.window)
    for (is_created, *_), own in groupby(parts, key=lambda each: (each.is_created, each.namespace, each.uid)):
        _add(found[not is_created], own, query, periods)
    return found


class _Own(Struct):
    """What one pod or workload waited for in one line."""

    span_us: int = 0
    pods: int = 0


def _add(found: SumsByLabels, own: Iterator[PendingTime], query: WaitQuery, periods: Periods) -> None:
    """Add the waits of one pod or workload."""
    sums, whole = defaultdict[Labels, _Own](_Own), _Own()
    for part in own:
        for shares, span_us in _pieces(part, query, periods):
            for labels, quantity in shares.items():
                for line_sums in (found.line(labels), found.total):
                    _count(line_sums, part, quantity, span_us)
            for each in (*(sums[labels] for labels in shares), whole):
                each.span_us += span_us
                each.pods = max(each.pods, part.pods)
    for labels, each in sums.items():
        found.lines[labels].spans.append(each.span_us)
        found.lines[labels].pods += each.pods
    if whole.pods:
        found.total.spans.append(whole.span_us)
        found.total.pods += whole.pods


def _count(line_sums: LineSums, part: PendingTime, quantity: int, span_us: int) -> None:
    gpu_time, currency = part.pods * quantity * span_us, part.price.currency if part.price else ""
    line_sums.time[currency] += gpu_time
    line_sums.at_least += gpu_time * part.is_at_least
    if part.price:
        line_sums.cost[currency] += part.price.cost(gpu_time)
        line_sums.highest[currency] += (part.highest or part.price).cost(gpu_time)


def _pieces(part: PendingTime, query: WaitQuery, periods: Periods) -> Iterator[tuple[Mapping[Labels, int], int]]:
    """The µGPU of a wait by line in each period that it overlaps, and how long it does, as far as the filters go."""
    window = query.scope.window
    starts, ends = (window.start_us, *periods.cuts), (*periods.cuts, window.end_us)
    for start_us, end_us, names in zip(starts, ends, periods.values, strict=True):
        until_us = end_us if part.to_us is None else min(part.to_us, end_us)
        span_us = until_us - max(part.from_us, start_us)
        if span_us > 0 and (shares := _shares(part, names, query)):
            yield shares, span_us


def _shares(part: PendingTime, names: Mapping[str, str], query: WaitQuery) -> dict[Labels, int]:
    """What is charged to the occupying tenant, and what to nobody, in µGPU by line."""
    found: dict[Labels, int] = {}
    for quantity, is_occupied in ((part.occupied, True), (part.quantity - part.occupied, False)):
        values = {**_values(part, is_occupied=is_occupied, own_tenants=query.own_tenants), **names}
        if quantity and query.scope.includes(values):
            labels = tuple(values[column] for column in query.columns)
            found[labels] = found.get(labels, 0) + quantity
    return found


def _values(part: PendingTime, *, is_occupied: bool, own_tenants: bool) -> dict[str, str]:
    tenant = part.occupying_tenant if is_occupied else NOBODY
    if own_tenants and is_occupied and part.occupying_tenant != part.tenant:
        tenant = OTHERS_TENANT
    return {
        "tier": part.tier,
        "tenant": part.tenant,
        "namespace": part.namespace,
        "pod": part.name,
        "cause": part.cause.value,
        "reason": part.reason.value,
        "occupying_tier": part.occupying_tier if is_occupied else NOBODY,
        "occupying_tenant": tenant,
    }


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


class CurrencyRows(NamedTuple):
    """The rows of pending or uncreated pods in one currency, and their total."""

    rows: tuple[WaitReportRow, ...]
    total: WaitReportRow


class _CurrencyLine(NamedTuple):
    """One line in one currency, in GPU-hours and units of the currency."""

    labels: Labels
    gpu_hours: Fraction
    unpriced: Fraction
    at_least: Fraction
    cost: Fraction
    highest_cost: Fraction
    line_sums: LineSums | None


def wait_rows(
    found: SumsByLabels, *, places: int, top: int | None, time_columns: Sequence[int] = ()
) -> list[CurrencyRows]:
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


def _line(labels: Labels, line_sums: LineSums, currency: str, *, has_unpriced: bool) -> _CurrencyLine:
    unpriced = line_sums.time.get("", 0) if has_unpriced else 0
    time = (line_sums.time.get(currency, 0) if currency else 0) + unpriced
    at_least = line_sums.at_least if has_unpriced else 0
    amounts = [Fraction(each, GPU_HOUR) for each in (time, unpriced, at_least)]
    costs = [Fraction(each.get(currency, 0), COST_UNIT) for each in (line_sums.cost, line_sums.highest)]
    return _CurrencyLine._make((labels, *amounts, *costs, line_sums))


def _shown(lines: Sequence[_CurrencyLine], top: int | None, time_columns: Sequence[int]) -> list[_CurrencyLine]:
    first, rest = list(lines[:top]), lines[top:] if top is not None else ()
    if time_columns:
        first.sort(key=lambda each: [in_order_of_time(each.labels[column]) for column in time_columns])
    if rest:
        amounts = (sum((getattr(each, name) for each in rest), Fraction()) for name in _AMOUNTS)
        first.append(_CurrencyLine._make(((OTHERS,) * len(rest[0].labels), *amounts, None)))
    return first


def _rounded(
    lines: Sequence[_CurrencyLine], total: _CurrencyLine, currency: str, pods: str, places: int
) -> CurrencyRows:
    """The amounts of the rows add up to those of the total."""
    columns, rows = _columns(lines, total, places), []
    for place, each in enumerate((*lines, total)):
        values: dict[str, Any] = {name: column[place] for name, column in columns.items()} | _durations(each.line_sums)
        rows.append(WaitReportRow(labels=each.labels, pods=pods, currency=currency, **values))
    return CurrencyRows(tuple(rows[:-1]), rows[-1])


def _columns(lines: Sequence[_CurrencyLine], total: _CurrencyLine, places: int) -> dict[str, list[Decimal]]:
    """The rounded amounts of the lines and, last, of their total: parts within GPU-hours, no cost above the highest."""
    base = "cost" if total.cost else "gpu_hours"
    parts = {
        name: column_of(_scaled(each, name, places) for each in lines) for name in ("gpu_hours", "cost", *_PARTS, _MORE)
    }
    totals = {name: rounded(_scaled(total, name, places)) for name in parts}
    parts["share"] = column_of(_percents(lines, base, getattr(total, base)))
    [totals["share"]] = map(rounded, _percents([total], base, getattr(total, base)))
    columns = apportioned_columns(parts, totals, lambda name, before: before["gpu_hours"] if name in _PARTS else None)
    found = {
        name: [
            Decimal(each).scaleb(-(PERCENT_PLACES if name == "share" else places)) for each in (*column, totals[name])
        ]
        for name, column in columns.items()
    }
    more = found.pop(_MORE)
    return found | {"highest_cost": [low + extra for low, extra in zip(found["cost"], more, strict=True)]}


def _scaled(line: _CurrencyLine, name: str, places: int) -> Fraction:
    amount: Fraction = line.highest_cost - line.cost if name == _MORE else getattr(line, name)
    return Fraction(amount * 10**places)


def _percents(lines: Sequence[_CurrencyLine], base: str, whole: Fraction) -> list[Fraction]:
    return [100 * 10**PERCENT_PLACES * getattr(each, base) / whole if whole else Fraction() for each in lines]


def _durations(line_sums: LineSums | None) -> dict[str, Any]:
    if line_sums is None or not line_sums.spans:
        return dict.fromkeys(("count", "p50_seconds", "p90_seconds", "max_seconds"))
    spans = sorted(line_sums.spans)
    of = {f"p{percent}_seconds": spans[-(-len(spans) * percent // 100) - 1] for percent in (50, 90)}
    of["max_seconds"] = spans[-1]
    return {"count": line_sums.pods} | {name: rounded(Fraction(us, US_PER_SECOND)) for name, us in of.items()}
