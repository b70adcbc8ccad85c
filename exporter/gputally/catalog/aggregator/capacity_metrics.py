"""GPU capacity of the nodes, by state."""

from collections.abc import Callable, Iterator

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.totals.total import Total
from gputally.catalog.aggregator.allocation_metrics import cost, gpu_seconds
from gputally.catalog.metric import Columns, Metric, MetricType, Row
from gputally.model.node_record import CapacityState
from gputally.model.units import GPU


def capacity_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """GPUs in a state are the growth rate of its GPU-time."""
    return (Row(p.labels, p.slope / GPU) for p in snapshot.totals[Total.CAPACITY] if not _is_overcommitted(p.labels))


def overcommitted_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every group that was ever overcommitted, and 0 for the others, so that alerts resolve."""
    overcommitted = {p.labels[:2]: p.slope for p in snapshot.totals[Total.CAPACITY] if _is_overcommitted(p.labels)}
    groups = dict.fromkeys(p.labels[:2] for p in snapshot.totals[Total.CAPACITY])
    return (Row(group, overcommitted.get(group, 0) / GPU) for group in groups)


def _is_overcommitted(labels: tuple[str, ...]) -> bool:
    return labels[2] == CapacityState.OVERCOMMITTED


def _partition(rows: Callable[[Snapshot], Columns]) -> Callable[[Snapshot], Iterator[Row]]:
    """The rows of the states that divide the capacity."""
    return lambda snapshot: (row for row in rows(snapshot) if not _is_overcommitted(row.labels))


def _overcommitted_gpu_seconds(snapshot: Snapshot) -> Iterator[Row]:
    rows = gpu_seconds(Total.CAPACITY)(snapshot)
    return (row._replace(labels=row.labels[:2]) for row in rows if _is_overcommitted(row.labels))


def unpriced_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """Every group of existing nodes, as 0 when all its GPUs have a price."""
    return (Row(group, quantity / GPU) for group, quantity in snapshot.inventory.unpriced.items())


CAPACITY_GPU_SECONDS = Metric[Snapshot](
    name="gputally_capacity_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds of the nodes by state; all states add up to the physical GPUs, plus overcommitted ones.",
    labels=("gpu_model", "pool", "state"),
    rows=_partition(gpu_seconds(Total.CAPACITY)),
)

CAPACITY_COST = Metric[Snapshot](
    name="gputally_capacity_cost_total",
    kind=MetricType.COUNTER,
    help="Cost of the capacity GPU-seconds that have a price, without tier multipliers, in units of the currency.",
    labels=("gpu_model", "pool", "state", "currency"),
    rows=_partition(cost(Total.CAPACITY_COST)),
)

CAPACITY_GPUS = Metric[Snapshot](
    name="gputally_capacity_gpus",
    kind=MetricType.GAUGE,
    help="GPUs of the nodes by current state; all states add up to the physical GPUs, plus overcommitted ones.",
    labels=("gpu_model", "pool", "state"),
    rows=capacity_gpus,
)

OVERCOMMITTED_GPUS = Metric[Snapshot](
    name="gputally_overcommitted_gpus",
    kind=MetricType.GAUGE,
    help="GPUs allocated to pods beyond the GPUs of their nodes.",
    labels=("gpu_model", "pool"),
    rows=overcommitted_gpus,
)

OVERCOMMITTED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_overcommitted_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds allocated to pods beyond the GPUs of their nodes.",
    labels=("gpu_model", "pool"),
    rows=_overcommitted_gpu_seconds,
    reference_only=True,
)

UNPRICED_GPUS = Metric[Snapshot](
    name="gputally_unpriced_gpus",
    kind=MetricType.GAUGE,
    help="Physical GPUs of existing nodes without a matching price rule.",
    labels=("gpu_model", "pool"),
    rows=unpriced_gpus,
)

NEVER_OFFERED_GPUS = Metric[Snapshot](
    name="gputally_never_offered_gpus",
    kind=MetricType.GAUGE,
    help="GPUs of existing nodes, by their labels, that the nodes have never offered as a resource; their state is "
    "unsliced.",
    labels=("gpu_model", "pool"),
    rows=lambda snapshot: (Row(group, quantity / GPU) for group, quantity in snapshot.inventory.never_offered.items()),
)

METRICS = (
    CAPACITY_GPU_SECONDS,
    CAPACITY_COST,
    CAPACITY_GPUS,
    OVERCOMMITTED_GPUS,
    OVERCOMMITTED_GPU_SECONDS,
    UNPRICED_GPUS,
    NEVER_OFFERED_GPUS,
)
