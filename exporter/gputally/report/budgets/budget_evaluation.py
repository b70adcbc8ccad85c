"""Evaluates budgets: what is spent, by the same bills as reports, and what is forecast."""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from fractions import Fraction
from typing import Final

from msgspec import Struct

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import LedgerState, Window
from gputally.model.budgets import GPU_HOURS, Budget, BudgetStatus
from gputally.model.units import COST_UNIT, GPU_HOUR
from gputally.report.bill import Line, bill_of
from gputally.report.budgets.budget_days import coming_days, date_of, days_of, first_past_us, past_days, running_total
from gputally.report.budgets.budget_forecast import ForecastPoint, forecast, reached
from gputally.report.calendar.periods import Calendar
from gputally.report.calendar.windows import budget_period
from gputally.report.cells import read_allocated
from gputally.report.report_query import ReportQuery

_BY: Final = ("day", "tenant", "tier")


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
