"""Budgets as people read them: amounts with decimals, percentages and dates."""

from datetime import datetime, tzinfo
from decimal import Decimal
from fractions import Fraction

from msgspec import Struct

from gputally.model.budgets import BudgetStatus
from gputally.model.periods import PeriodLength
from gputally.model.units import GPU_HOUR, to_datetime
from gputally.report.budgets.budget_evaluation import EvaluatedBudget
from gputally.report.rounding import decimal_of


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
