"""Budgets as last evaluated; all of them only if budgets are configured."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.budgets import GPU_HOURS, BudgetsHealth, BudgetValues

_LABELS: Final = ("budget", "tenant", "tier", "period")
_HOUR_SECONDS: Final = 3600
_Further = tuple[str, ...]
Amounts = Callable[[BudgetValues], Iterable[tuple[_Further, float | None]]]
"""Amounts of a budget with their further labels; None is not exported."""


def _labels(values: BudgetValues) -> tuple[str, ...]:
    return values.budget, values.tenant, values.tier, values.period.value


def _costs(amounts: Amounts) -> Callable[[BudgetsHealth], Iterator[Row]]:
    """Rows of the budgets in money."""
    return lambda budgets: (
        Row((*_labels(each), each.unit, *labels), value)
        for each in budgets.values
        if each.unit != GPU_HOURS
        for labels, value in _present(amounts(each))
    )


def _gpu_seconds(amounts: Amounts) -> Callable[[BudgetsHealth], Iterator[Row]]:
    """Rows of the budgets in GPU-hours."""
    return lambda budgets: (
        Row((*_labels(each), *labels), value * _HOUR_SECONDS)
        for each in budgets.values
        if each.unit == GPU_HOURS
        for labels, value in _present(amounts(each))
    )


def _present(amounts: Iterable[tuple[_Further, float | None]]) -> Iterator[tuple[_Further, float]]:
    return ((labels, value) for labels, value in amounts if value is not None)


def _limit(values: BudgetValues) -> list[tuple[_Further, float | None]]:
    return [((), values.limit)]


def _spent(values: BudgetValues) -> list[tuple[_Further, float | None]]:
    return [((), values.spent)]


def _forecast(values: BudgetValues) -> list[tuple[_Further, float | None]]:
    return [
        (("expected",), values.forecast),
        (("lower",), values.forecast_lower),
        (("upper",), values.forecast_upper),
    ]


def exhaustion(budgets: BudgetsHealth) -> Iterator[Row]:
    """No row for a budget that is not expected to be exhausted."""
    for each in budgets.values:
        for bound, at in (("expected", each.exhausted), ("upper", each.earliest)):
            if at is not None:
                yield Row((*_labels(each), bound), at.timestamp())


LIMIT_COST = Metric[BudgetsHealth](
    name="gputally_budget_limit_cost",
    kind=MetricType.GAUGE,
    help="What a budget in money allows in each period; the labels tenant and tier are its patterns.",
    labels=(*_LABELS, "currency"),
    rows=_costs(_limit),
)

LIMIT_GPU_SECONDS = Metric[BudgetsHealth](
    name="gputally_budget_limit_gpu_seconds",
    kind=MetricType.GAUGE,
    help="What a budget in GPU-hours allows in each period; the labels tenant and tier are its patterns.",
    labels=_LABELS,
    rows=_gpu_seconds(_limit),
)

SPENT_COST = Metric[BudgetsHealth](
    name="gputally_budget_spent_cost",
    kind=MetricType.GAUGE,
    help="Cost since the start of the budget's current period, from the ledger.",
    labels=(*_LABELS, "currency"),
    rows=_costs(_spent),
)

SPENT_GPU_SECONDS = Metric[BudgetsHealth](
    name="gputally_budget_spent_gpu_seconds",
    kind=MetricType.GAUGE,
    help="GPU-seconds allocated since the start of the budget's current period, from the ledger.",
    labels=_LABELS,
    rows=_gpu_seconds(_spent),
)

FORECAST_COST = Metric[BudgetsHealth](
    name="gputally_budget_forecast_cost",
    kind=MetricType.GAUGE,
    help="Forecast of the cost at the end of the budget's period, with the bounds of its 80 % interval; absent with "
    "less than three full days of data.",
    labels=(*_LABELS, "currency", "bound"),
    rows=_costs(_forecast),
)

FORECAST_GPU_SECONDS = Metric[BudgetsHealth](
    name="gputally_budget_forecast_gpu_seconds",
    kind=MetricType.GAUGE,
    help="Forecast of the GPU-seconds at the end of the budget's period, with the bounds of its 80 % interval; absent "
    "with less than three full days of data.",
    labels=(*_LABELS, "bound"),
    rows=_gpu_seconds(_forecast),
)

EXHAUSTION = Metric[BudgetsHealth](
    name="gputally_budget_exhaustion_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="When the budget is exhausted, true to the day: as expected or already past, and at the upper bound of the "
    "forecast; absent if not within the period.",
    labels=(*_LABELS, "bound"),
    rows=exhaustion,
)

ELAPSED = Metric[BudgetsHealth](
    name="gputally_budget_elapsed_ratio",
    kind=MetricType.GAUGE,
    help="Elapsed share of the budget's current period.",
    labels=_LABELS,
    rows=lambda budgets: (Row(_labels(each), each.elapsed_percent / 100) for each in budgets.values),
)


def accounted_rows(budgets: BudgetsHealth) -> list[Row]:
    """From the start on, so that an alert fires if no evaluation ever succeeds."""
    since = budgets.accounted or budgets.started
    return [Row((), since.timestamp())] if since else []


ACCOUNTED = Metric[BudgetsHealth](
    name="gputally_budgets_accounted_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time up to which the values of all budgets count, which are evaluated every few minutes; before the first "
    "evaluation, the start of the aggregator.",
    rows=accounted_rows,
)

FAILURES = Metric[BudgetsHealth](
    name="gputally_budgets_evaluation_failures_total",
    kind=MetricType.COUNTER,
    help="Evaluations of the budgets that failed; their values are then those of the last one that succeeded.",
    rows=lambda budgets: [Row((), budgets.failures)],
    reference_only=True,
)

UNMATCHED = Metric[BudgetsHealth](
    name="gputally_budgets_unmatched",
    kind=MetricType.GAUGE,
    help="Budgets that no allocation of their period or of the last four weeks matches: check their tenants and tiers.",
    rows=lambda budgets: [Row((), sum(not each.matched for each in budgets.values))] if budgets.accounted else [],
    reference_only=True,
)

METRICS = (
    LIMIT_COST,
    LIMIT_GPU_SECONDS,
    SPENT_COST,
    SPENT_GPU_SECONDS,
    FORECAST_COST,
    FORECAST_GPU_SECONDS,
    EXHAUSTION,
    ELAPSED,
    ACCOUNTED,
    FAILURES,
    UNMATCHED,
)
