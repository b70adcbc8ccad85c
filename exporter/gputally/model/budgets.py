"""Budgets: what tenants or tiers may spend in each calendar period, and the values that metrics show."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from gputally.model.periods import PeriodLength
from gputally.model.units import COST_UNIT, GPU_HOUR

GPU_HOURS: Final = "GPU-hours"
"""The unit of a budget that is not money."""


class BudgetStatus(StrEnum):
    """What is known of a budget."""

    EXCEEDED = "exceeded"
    EXPECTED = "will be exceeded"
    """The expected forecast is above the limit."""
    POSSIBLE = "may be exceeded"
    """Only the upper bound of the forecast is above it."""
    WITHIN = "within"
    UNKNOWN = "no forecast"
    """Not exceeded, and too few days for a forecast."""


class Budget(Struct, frozen=True, kw_only=True, cache_hash=True):
    """The allocations of tenants and tiers that match both globs may spend `amount`, or `gpu_hours`, in each period.

    Exactly one of the two is given; the amount is in the currency of the price book. Periods begin at midnight in
    `time_zone`.
    """

    name: str
    tenant: str = "*"
    tier: str = "*"
    period: PeriodLength
    time_zone: str = "UTC"
    amount: Decimal | None = None
    gpu_hours: Decimal | None = None

    @property
    def limit(self) -> int:
        """The amount of the budget as cost, see `COST_UNIT`, or its GPU-hours as GPU-time (µs·µGPU)."""
        size, unit = (self.gpu_hours or Decimal(), GPU_HOUR) if self.amount is None else (self.amount, COST_UNIT)
        numerator, denominator = size.as_integer_ratio()
        return numerator * unit // denominator

    def includes(self, *, tenant: str, tier: str) -> bool:
        """Whether allocations of this tenant and tier count."""
        return fnmatchcase(tenant, self.tenant) and fnmatchcase(tier, self.tier)


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
