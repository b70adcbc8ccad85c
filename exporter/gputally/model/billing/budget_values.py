"""Evaluated budgets, as metrics show them."""

from datetime import datetime

from msgspec import Struct

from gputally.model.billing.calendar_period import PeriodLength


class BudgetValues(Struct, frozen=True, kw_only=True):
    """An evaluated budget for output. `unit` is a currency or `GPU_HOURS`.

    The forecast is that for the end of the period; None if there is none. `exhausted` is when the limit is reached, as
    expected or already past, and `earliest` when at the upper bound; None if not within the period. `matched` says
    whether any allocation of the period or of the past days counts.
    """

    budget: str
    tenant: str
    tier: str
    period: PeriodLength
    unit: str
    limit: float
    spent: float
    elapsed_percent: float
    forecast: float | None
    forecast_lower: float | None
    forecast_upper: float | None
    exhausted: datetime | None
    earliest: datetime | None
    matched: bool


class BudgetsHealth(Struct, kw_only=True):
    """The last evaluation of all budgets; updated by the task that evaluates them."""

    values: tuple[BudgetValues, ...] = ()
    accounted: datetime | None = None
    """The time up to which the values count; None before the first evaluation."""
    started: datetime | None = None
    """When the aggregator started."""
    failures: int = 0
    """Evaluations since the process started that failed and left the earlier values."""
