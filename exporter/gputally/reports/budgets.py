"""Budgets: what is spent of each, by the same bills as reports, and what is forecast."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, isqrt
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import LedgerState, Window
from gputally.model.budgets import GPU_HOURS, Budget, BudgetStatus
from gputally.model.periods import PeriodLength
from gputally.model.units import COST_UNIT, GPU_HOUR, to_datetime
from gputally.reports.bill import Line, bill_of
from gputally.reports.cells import read_allocated
from gputally.reports.query import ReportQuery
from gputally.reports.rounding import decimal_of
from gputally.reports.time_dimensions import Calendar
from gputally.reports.windows import budget_period, day_window

MIN_DAYS: Final = 3
"""Without so many full days there is no forecast."""
WEEKDAY_DAYS: Final = 14
"""From so many full days on, each weekday has a mean of its own."""
MAX_DAYS: Final = 28
"""Full days that count."""
_WEEK: Final = 7
_MAX_CORRELATION: Final = Fraction(9, 10)
_T: Final = (
    *("3.078", "1.886", "1.638", "1.533", "1.476", "1.440", "1.415", "1.397", "1.383", "1.372", "1.363"),
    *("1.356", "1.350", "1.345", "1.341", "1.337", "1.333", "1.330", "1.328", "1.325", "1.323"),
)
"""The 0.9 quantile of Student's t for 1 to 21 degrees of freedom: the bounds hold with 80 %."""
Days = Mapping[str, int]
"""What was spent, by ISO date; nothing on other days."""
_BY: Final = ("day", "tenant", "tier")


class PastDay(NamedTuple):
    """A full day that is over, with what was spent on it. The weekday is 0 on Monday."""

    weekday: int
    spent: int


class ComingDay(NamedTuple):
    """A day of the rest of a period, up to `end_us`; of the current day, only a `part` is still to come."""

    weekday: int
    part: Fraction
    end_us: int


class ForecastPoint(NamedTuple):
    """What will have been spent at an instant."""

    at_us: int
    expected: Fraction
    lower: Fraction
    upper: Fraction


def forecast(past: Sequence[PastDay], coming: Iterable[ComingDay], *, spent: int, now_us: int) -> list[ForecastPoint]:
    """What will have been spent: `spent` at `now_us`, then a point at the end of each coming day.

    `past` are consecutive full days up to the current one, of which the last `MAX_DAYS` count. Empty if they are fewer
    than `MIN_DAYS`.

    A coming day is expected to spend the mean of the past days, or from `WEEKDAY_DAYS` on that of its weekday. The
    interval is the 80 % prediction interval of a sum: t·s·sqrt(v·(M + Σ m²/n)), where s² is the variance of the past
    days about their means, t the quantile of Student's t for its degrees of freedom, M the number of coming days, m
    those with the same mean, and n the past days of that mean. The term M is the chance of the coming days, the other
    the error of the means. v = (1 + r)/(1 - r) widens it where busy days follow busy days: r is the correlation of
    each day with the one before, from 0 to 0.9. What is spent cannot fall, so the lower bound is at least `spent`.
    """
    days = past[-MAX_DAYS:]
    if len(days) < MIN_DAYS:
        return []
    pattern = _Pattern(days)
    found, expected, counts = [ForecastPoint(now_us, *[Fraction(spent)] * 3)], Fraction(spent), dict[int, Fraction]()
    for day in coming:
        group = pattern.group(day.weekday)
        expected += day.part * pattern.means[group]
        counts[group] = counts.get(group, Fraction()) + day.part
        width = pattern.width(counts)
        found.append(ForecastPoint(day.end_us, expected, max(Fraction(spent), expected - width), expected + width))
    return found


def reached(points: Iterable[tuple[int, Fraction]], limit: int) -> int | None:
    """When a growing sum with these values at instants (µs) reaches `limit`; None if it never exceeds it.

    Between two instants, it grows evenly.
    """
    for (from_us, before), (to_us, after) in pairwise(points):
        if after > limit:
            return from_us + int((to_us - from_us) * (limit - before) / (after - before))
    return None


class _Pattern:
    """The means of past days, by weekday if there are enough, and how single days differ from them."""

    def __init__(self, days: Sequence[PastDay]) -> None:
        self._by_weekday = len(days) >= WEEKDAY_DAYS
        groups: dict[int, list[int]] = {}
        for day in days:
            groups.setdefault(self.group(day.weekday), []).append(day.spent)
        self._sizes = {group: len(values) for group, values in groups.items()}
        self.means = {group: Fraction(sum(values), len(values)) for group, values in groups.items()}
        rest = [day.spent - self.means[self.group(day.weekday)] for day in days]
        squares = sum((each * each for each in rest), Fraction())
        freedom = len(days) - len(groups)
        neighbours = sum((one * other for one, other in pairwise(rest)), Fraction())
        correlation = min(max(neighbours / squares, Fraction()), _MAX_CORRELATION) if squares else Fraction()
        self._scale = Fraction(_T[freedom - 1]) ** 2 * squares / freedom * (1 + correlation) / (1 - correlation)

    def group(self, weekday: int) -> int:
        """The group of days with one mean."""
        return weekday if self._by_weekday else 0

    def width(self, counts: dict[int, Fraction]) -> int:
        """Half of the interval of the sum of so many coming days by group, rounded up."""
        variance = sum((count + count * count / self._sizes[group] for group, count in counts.items()), Fraction())
        square = ceil(self._scale * variance)
        root = isqrt(square)
        return root + (root * root < square)


def days_of(lines: Iterable[Line], *, currency: str | None) -> Days:
    """The cost in this currency, or the GPU-time if it is None, of lines whose first label is their day."""
    found: dict[str, int] = {}
    for line in lines:
        value = line.gpu_time if currency is None else line.cost * (line.currency == currency)
        found[line.labels[0]] = found.get(line.labels[0], 0) + value
    return found


def running_total(days: Days, window: Window, *, zone: tzinfo) -> list[tuple[int, int]]:
    """What was spent from the start of the window, at its start and at the end (µs) of each of its days."""
    at_us, total = window.start_us, 0
    found = [(at_us, total)]
    while at_us < window.end_us:
        day = date_of(at_us, zone)
        total += days.get(day.isoformat(), 0)
        at_us = min(day_window(day, zone=zone).end_us, window.end_us)
        found.append((at_us, total))
    return found


def past_days(days: Days, window: Window, *, zone: tzinfo) -> list[PastDay]:
    """The full days in the accounted window before its last one, at most `MAX_DAYS`."""
    today = date_of(window.end_us, zone)
    candidates = (today - timedelta(days=before) for before in range(MAX_DAYS, 0, -1))
    return [
        PastDay(day.weekday(), days.get(day.isoformat(), 0))
        for day in candidates
        if day_window(day, zone=zone).start_us >= window.start_us
    ]


def first_past_us(now_us: int, *, zone: tzinfo) -> int:
    """When the first of the days begins that `past_days` can return."""
    return day_window(date_of(now_us, zone) - timedelta(days=MAX_DAYS), zone=zone).start_us


def coming_days(window: Window, *, zone: tzinfo) -> Iterator[ComingDay]:
    """The days of the window, of which the first may have begun."""
    at_us = window.start_us
    while at_us < window.end_us:
        day = date_of(at_us, zone)
        start_us, end_us = day_window(day, zone=zone)
        yield ComingDay(day.weekday(), Fraction(end_us - at_us, end_us - start_us), end_us)
        at_us = end_us


def date_of(at_us: int, zone: tzinfo) -> date:
    """The date of the instant in `zone`."""
    return to_datetime(at_us).astimezone(zone).date()


class EvaluatedBudget(Struct, frozen=True, kw_only=True):
    """A budget in its current `window`, of which [start, `accounted_us`) is spent.

    Amounts are exact, in the unit of `Budget.limit`. `currency` is empty for GPU-hours. `unpriced` is the GPU-time
    without a price, which an amount lacks. `end` is the forecast at the end of the window, None if there is none.
    `exhausted_us` is when the limit is reached, as expected or already past, true to the day, and `earliest_us` when
    at the upper bound; None if not within the window. `is_matched` says whether any allocation of the window or of the
    past days counts.
    """

    budget: Budget
    currency: str
    window: Window
    accounted_us: int
    spent: int
    unpriced: int
    end: ForecastPoint | None
    exhausted_us: int | None
    earliest_us: int | None
    is_matched: bool

    @property
    def unit(self) -> str:
        """The currency, or `GPU_HOURS`."""
        return self.currency or GPU_HOURS

    @property
    def unit_size(self) -> int:
        """One unit of the amounts."""
        return COST_UNIT if self.currency else GPU_HOUR

    @property
    def elapsed(self) -> Fraction:
        """The accounted share of the window."""
        return Fraction(self.accounted_us - self.window.start_us, self.window.end_us - self.window.start_us)

    @property
    def status(self) -> BudgetStatus:
        """What is known of the budget."""
        if self.spent > self.budget.limit:
            return BudgetStatus.EXCEEDED
        if self.end is None:
            return BudgetStatus.UNKNOWN
        if self.end.expected > self.budget.limit:
            return BudgetStatus.EXPECTED
        return BudgetStatus.POSSIBLE if self.end.upper > self.budget.limit else BudgetStatus.WITHIN


def evaluate(
    reader: LedgerReader, budgets: Sequence[Budget], *, currency: str, zone_of: Callable[[str], tzinfo]
) -> list[EvaluatedBudget]:
    """Each budget in its period at the time up to which the ledger is complete; one read for each time zone.

    `currency` is that of the price book. Raises: LedgerError.
    """
    state = reader.state()
    found = dict[Budget, EvaluatedBudget]()
    for name in dict.fromkeys(each.time_zone for each in budgets):
        zone, same = zone_of(name), [each for each in budgets if each.time_zone == name]
        lines = _lines(reader, state, same, zone)
        found |= {each: _evaluated(each, lines, state, currency=currency, zone=zone) for each in same}
    return [found[each] for each in budgets]


def _lines(reader: LedgerReader, state: LedgerState, budgets: Sequence[Budget], zone: tzinfo) -> Sequence[Line]:
    """What was allocated by day, tenant and tier, from the first day that any of the budgets needs."""
    now_us = state.accounted_us
    starts = (budget_period(each.period, at_us=now_us, zone=zone).start_us for each in budgets)
    first_us = max(min(first_past_us(now_us, zone=zone), *starts), state.accounting_start_us)
    query = ReportQuery(window=Window(first_us, now_us), by=_BY, calendar=Calendar(zone))
    return bill_of(read_allocated(reader, query)).lines


def _evaluated(
    budget: Budget, lines: Sequence[Line], state: LedgerState, *, currency: str, zone: tzinfo
) -> EvaluatedBudget:
    now_us, start_us = state.accounted_us, state.accounting_start_us
    own = [line for line in lines if budget.includes(tenant=line.labels[1], tier=line.labels[2])]
    days = days_of(own, currency=None if budget.amount is None else currency)
    window = budget_period(budget.period, at_us=now_us, zone=zone)
    so_far = running_total(days, Window(max(window.start_us, start_us), now_us), zone=zone)
    past = past_days(days, Window(start_us, now_us), zone=zone)
    points = forecast(past, coming_days(Window(now_us, window.end_us), zone=zone), spent=so_far[-1][1], now_us=now_us)
    curve = [(at_us, Fraction(total)) for at_us, total in so_far]
    first_day = date_of(window.start_us, zone).isoformat()
    return EvaluatedBudget(
        budget=budget,
        currency="" if budget.amount is None else currency,
        window=window,
        accounted_us=now_us,
        spent=so_far[-1][1],
        unpriced=sum(line.unpriced for line in own if line.labels[0] >= first_day),
        end=points[-1] if points else None,
        exhausted_us=reached([*curve, *((each.at_us, each.expected) for each in points[1:])], budget.limit),
        earliest_us=reached([*curve, *((each.at_us, each.upper) for each in points[1:])], budget.limit),
        is_matched=bool(own),
    )


class BudgetRow(Struct, frozen=True, kw_only=True):
    """One budget, rounded; see `BudgetValues`. `start` and `end` are those of its period, in its time zone.

    `unpriced_gpu_hours` have no price, so an amount lacks them.
    """

    budget: str
    tenant: str
    tier: str
    period: PeriodLength
    start: datetime
    end: datetime
    unit: str
    limit: Decimal
    spent: Decimal
    spent_percent: Decimal
    elapsed_percent: Decimal
    forecast: Decimal | None
    forecast_lower: Decimal | None
    forecast_upper: Decimal | None
    exhausted: datetime | None
    earliest: datetime | None
    status: BudgetStatus
    matched: bool
    unpriced_gpu_hours: Decimal

    @property
    def window(self) -> str:
        """The period in the form of `gputally report --window`."""
        return f"{self.start:%Y-%m-%d}/{self.end:%Y-%m-%d}"


def budget_row(found: EvaluatedBudget, *, places: int, zone: tzinfo) -> BudgetRow:
    """The budget with so many decimals of its amounts; `zone` is that of the budget."""
    size, limit, end = found.unit_size, found.budget.limit, found.end

    def at(us: int | None) -> datetime | None:
        return None if us is None else to_datetime(us - us % 1_000_000).astimezone(zone)

    def amount(value: Fraction | None) -> Decimal | None:
        return None if value is None else decimal_of(value / size, places)

    return BudgetRow(
        budget=found.budget.name,
        tenant=found.budget.tenant,
        tier=found.budget.tier,
        period=found.budget.period,
        start=to_datetime(found.window.start_us).astimezone(zone),
        end=to_datetime(found.window.end_us).astimezone(zone),
        unit=found.unit,
        limit=decimal_of(Fraction(limit, size), places),
        spent=decimal_of(Fraction(found.spent, size), places),
        spent_percent=decimal_of(Fraction(100 * found.spent, limit), 1),
        elapsed_percent=decimal_of(100 * found.elapsed, 1),
        forecast=amount(end.expected if end else None),
        forecast_lower=amount(end.lower if end else None),
        forecast_upper=amount(end.upper if end else None),
        exhausted=at(found.exhausted_us),
        earliest=at(found.earliest_us),
        status=found.status,
        matched=found.is_matched,
        unpriced_gpu_hours=decimal_of(Fraction(found.unpriced, GPU_HOUR), places),
    )
