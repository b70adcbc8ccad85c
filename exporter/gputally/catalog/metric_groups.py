"""All metrics of aggregator and agent, in the order they are documented."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gputally.catalog.agent.node_metrics import NODE_GROUPS
from gputally.catalog.aggregator import accounting_metrics as accounting
from gputally.catalog.aggregator import allocation_metrics as allocation
from gputally.catalog.aggregator import capacity_metrics as capacity
from gputally.catalog.aggregator import job_metrics as jobs
from gputally.catalog.aggregator import lost_work_metrics as lost_work
from gputally.catalog.aggregator import pending_metrics as pending
from gputally.catalog.aggregator import preemption_metrics as preemption
from gputally.catalog.aggregator import price_metrics as prices
from gputally.catalog.aggregator import tier_metrics as tiers
from gputally.catalog.aggregator import usage_metrics as usage
from gputally.catalog.aggregator.waits import uncreated_metrics as uncreated
from gputally.catalog.aggregator.waits import wait_metrics as waits
from gputally.catalog.all import BUDGETS, HEALTH, PODS
from gputally.catalog.metric import Metric

GROUPS: Final[Mapping[str, Sequence[Metric[Any]]]] = {
    "Allocation": allocation.METRICS,
    "Jobs": jobs.METRICS,
    "Usage": usage.METRICS,
    "Capacity": capacity.METRICS,
    "Tiers": tiers.METRICS,
    "Pending": (*pending.METRICS, *waits.METRICS, *uncreated.METRICS),
    "Preemption": (*preemption.METRICS, *lost_work.METRICS),
    "Pods and nodes": PODS,
    "Prices": prices.METRICS,
    "Budgets": BUDGETS,
    "Accounting": accounting.METRICS,
    "Exporter health": HEALTH,
    **NODE_GROUPS,
}
"""Metrics by the title of their subject."""
