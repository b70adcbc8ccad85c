"""The metrics of the aggregator, in the order they are exposed."""

from typing import Final

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.catalog.aggregator import accounting_metrics as accounting
from gputally.catalog.aggregator import allocation_metrics as allocation
from gputally.catalog.aggregator import budget_metrics as budgets
from gputally.catalog.aggregator import capacity_metrics as capacity
from gputally.catalog.aggregator import health_metrics as health
from gputally.catalog.aggregator import lost_work_metrics as lost_work
from gputally.catalog.aggregator import pending_metrics as pending
from gputally.catalog.aggregator import pod_metrics as pods
from gputally.catalog.aggregator import preemption_metrics as preemption
from gputally.catalog.aggregator import price_metrics as prices
from gputally.catalog.aggregator import tier_metrics as tiers
from gputally.catalog.aggregator import usage_metrics as usage
from gputally.catalog.aggregator import wait_metrics as waits
from gputally.catalog.metric import Metric

FLEET: Final[tuple[Metric[Snapshot], ...]] = (
    *allocation.METRICS,
    *allocation.JOB_METRICS,
    *usage.METRICS,
    *capacity.METRICS,
    *tiers.METRICS,
    *pending.METRICS,
    *waits.METRICS,
    *pending.UNCREATED_METRICS,
    *preemption.METRICS,
    *lost_work.METRICS,
    *prices.METRICS,
    *accounting.METRICS,
)
"""Metrics of the fleet: rows from a Snapshot."""
PODS: Final[tuple[Metric[pods.PodsView], ...]] = pods.METRICS
"""Metrics of `/metrics/pods`: rows from a PodsView."""
HEALTH: Final = health.METRICS
"""Metrics of the exporter's own health: rows from a Health."""
BUDGETS: Final = budgets.METRICS
"""Metrics of budgets, if any are configured: rows from a BudgetsHealth."""
