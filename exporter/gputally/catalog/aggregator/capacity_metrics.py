"""GPU capacity of the nodes, by state."""

from collections.abc import Iterator

from gputally.accounting.snapshot import Snapshot
from gputally.accounting.totals.totals import Total
from gputally.catalog.aggregator.allocation_metrics import cost, gpu_seconds
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.units import GPU


def capacity_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """GPUs in a state are the growth rate of its GPU-time."""
    return (Row(p.labels, p.slope / GPU) for p in snapshot.totals[Total.CAPACITY])


def unpriced_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """Every group of existing nodes, as 0 when all its GPUs have a price."""
    return (Row(group, quantity / GPU) for group, quantity in snapshot.unpriced.items())


CAPACITY_GPU_SECONDS = Metric[Snapshot](
    name="gputally_capacity_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds of the nodes by state; all states except overcommitted add up to the physical GPUs.",
    labels=("gpu_model", "pool", "state"),
    rows=gpu_seconds(Total.CAPACITY),
)

CAPACITY_COST = Metric[Snapshot](
    name="gputally_capacity_cost_total",
    kind=MetricType.COUNTER,
    help="Cost of the capacity GPU-seconds that have a price, without tier multipliers, in units of the currency.",
    labels=("gpu_model", "pool", "state", "currency"),
    rows=cost(Total.CAPACITY_COST),
)

CAPACITY_GPUS = Metric[Snapshot](
    name="gputally_capacity_gpus",
    kind=MetricType.GAUGE,
    help="GPUs of the nodes by current state.",
    labels=("gpu_model", "pool", "state"),
    rows=capacity_gpus,
)

UNPRICED_GPUS = Metric[Snapshot](
    name="gputally_unpriced_gpus",
    kind=MetricType.GAUGE,
    help="Physical GPUs of existing nodes without a matching price rule.",
    labels=("gpu_model", "pool"),
    rows=unpriced_gpus,
)

METRICS = (CAPACITY_GPU_SECONDS, CAPACITY_COST, CAPACITY_GPUS, UNPRICED_GPUS)
