"""The work that preemptions and other disruptions destroyed, and the work that they could destroy now."""

from collections.abc import Iterator

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.totals.total import Total
from gputally.catalog.aggregator.allocation_metrics import cost, gpu_seconds
from gputally.catalog.metric import Columns, Metric, MetricType, Row
from gputally.catalog.sums import Grouping
from gputally.model.units import COST_UNIT, GPU_SECOND


def at_risk_gpu_seconds(snapshot: Snapshot) -> Columns:
    """A row for every tier and tenant that ever had GPUs, including 0."""
    pairs = _PAIRS.of(snapshot.totals[Total.ALLOCATED].labels).labels
    values = snapshot.at_risk.gpu_time
    return Columns(pairs, [values.get(pair, 0) / GPU_SECOND for pair in pairs])


_PAIRS = Grouping(lambda labels: labels[:2])


def at_risk_cost(snapshot: Snapshot) -> Columns:
    """A row for each tier, tenant and currency with running pods."""
    cost = snapshot.at_risk.cost
    return Columns(tuple(cost), [value / COST_UNIT for value in cost.values()])


def checkpoints_overdue(snapshot: Snapshot) -> Iterator[Row]:
    """A row for each tier and tenant with running pods that declare an interval, including 0."""
    return (Row(labels, count) for labels, count in snapshot.at_risk.overdue.items())


LOST_GPU_SECONDS = Metric[Snapshot](
    name="gputally_preemption_lost_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds of work since the last checkpoint that preemptions destroyed, in victims and pods that restarted "
    "with them, by how the checkpoint is known; with basis start an upper bound.",
    labels=("victim_tier", "victim_tenant", "basis"),
    rows=gpu_seconds(Total.LOST),
)

LOST_COST = Metric[Snapshot](
    name="gputally_preemption_lost_cost_total",
    kind=MetricType.COUNTER,
    help="Cost of the GPU-seconds of work that preemptions destroyed, in units of the currency; an upper bound as far "
    "as no checkpoint of the pods is known.",
    labels=("victim_tier", "victim_tenant", "currency"),
    rows=cost(Total.LOST_COST),
)

LOST_AT_INTERVAL = Metric[Snapshot](
    name="gputally_preemption_lost_at_interval_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds of work that preemptions would have destroyed if every pod had saved a checkpoint so often since "
    "its start.",
    labels=("victim_tier", "victim_tenant", "interval"),
    rows=gpu_seconds(Total.LOST_AT_INTERVAL),
)

DISRUPTION_LOST_GPU_SECONDS = Metric[Snapshot](
    name="gputally_disruption_lost_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds of work since the last checkpoint that disruptions and restarts of containers destroyed, in pods "
    "and those that restarted with them, by cause, those of preemptions, too; an upper bound as far as no checkpoint "
    "is known.",
    labels=("tier", "tenant", "cause"),
    rows=gpu_seconds(Total.DISRUPTION_LOST),
)

DISRUPTION_LOST_COST = Metric[Snapshot](
    name="gputally_disruption_lost_cost_total",
    kind=MetricType.COUNTER,
    help="Cost of the GPU-seconds of work that disruptions and restarts of containers destroyed, by cause, in units of "
    "the currency; an upper bound as far as no checkpoint of the pods is known.",
    labels=("tier", "tenant", "cause", "currency"),
    rows=cost(Total.DISRUPTION_LOST_COST),
)

STALLED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_preemption_stalled_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds of running pods that waited for the replacement of a preempted pod of their group.",
    labels=("tier", "tenant"),
    rows=gpu_seconds(Total.STALLED),
)

AT_RISK_GPU_SECONDS = Metric[Snapshot](
    name="gputally_work_at_risk_gpu_seconds",
    kind=MetricType.GAUGE,
    help="GPU-seconds of work since the last checkpoints that a preemption of all running pods would destroy now; pods "
    "that serve users and placeholders have none.",
    labels=("tier", "tenant"),
    rows=at_risk_gpu_seconds,
)

AT_RISK_COST = Metric[Snapshot](
    name="gputally_work_at_risk_cost",
    kind=MetricType.GAUGE,
    help="Cost of the work that a preemption of all running pods would destroy now, in units of the currency; an upper "
    "bound as far as no checkpoint of the pods is known.",
    labels=("tier", "tenant", "currency"),
    rows=at_risk_cost,
)

CHECKPOINTS_OVERDUE = Metric[Snapshot](
    name="gputally_checkpoints_overdue",
    kind=MetricType.GAUGE,
    help="Running pods that declare a checkpoint interval and have stated no checkpoint for 1.5 times as long.",
    labels=("tier", "tenant"),
    rows=checkpoints_overdue,
)

METRICS = (
    LOST_GPU_SECONDS,
    LOST_COST,
    LOST_AT_INTERVAL,
    DISRUPTION_LOST_GPU_SECONDS,
    DISRUPTION_LOST_COST,
    STALLED_GPU_SECONDS,
    AT_RISK_GPU_SECONDS,
    AT_RISK_COST,
    CHECKPOINTS_OVERDUE,
)
