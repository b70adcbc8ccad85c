"""GPUs allocated to pods, their cost, and the GPU-seconds of the jobs that had them."""

from collections.abc import Callable, Iterator

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.totals.series import Published
from gputally.accounting.totals.total import Total
from gputally.catalog.metric import Columns, Metric, MetricType, Row
from gputally.catalog.sums import Grouping
from gputally.model.units import COST_UNIT, GPU, GPU_SECOND, US_PER_SECOND


def gpu_seconds(total: Total) -> Callable[[Snapshot], Columns]:
    """Rows of a family of GPU-time in GPU-seconds."""
    return lambda snapshot: _samples(snapshot.totals[total], GPU_SECOND)


def cost(total: Total) -> Callable[[Snapshot], Columns]:
    """Rows of a family of cost in its currency."""
    return lambda snapshot: _samples(snapshot.totals[total], COST_UNIT)


def gpus(total: Total) -> Callable[[Snapshot], Columns]:
    """Rows of a family of quantities in GPUs."""
    return lambda snapshot: _samples(snapshot.totals[total], GPU)


def counts(total: Total) -> Callable[[Snapshot], Columns]:
    """Rows of a family of counts."""
    return lambda snapshot: _samples(snapshot.totals[total], 1)


def _samples(published: Published, unit: int) -> Columns:
    """Values in `unit`s; dividing integers of any size rounds only once."""
    return Columns(published.labels, [value / unit for value in published.values], published.created_us)


def allocated_gpus(snapshot: Snapshot) -> Columns:
    """Allocated GPUs are the growth rate of allocated GPU-time; groups without GPUs are exported as 0."""
    allocated = snapshot.totals[Total.ALLOCATED]
    groups = _ALL_STATES.of(allocated.labels)
    return Columns(groups.labels, [slope / GPU for slope in groups.sums(allocated.slopes)])


def oldest_starting(snapshot: Snapshot) -> Iterator[Row]:
    """Only for tiers and tenants that have any."""
    return (Row(labels, bound_us / US_PER_SECOND) for labels, bound_us in sorted(snapshot.starting.items()))


_ALL_STATES = Grouping(lambda labels: labels[:3])


ALLOCATED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_allocated_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds allocated to pods from binding to release, in state starting, gang_wait, running or terminating.",
    labels=("tier", "tenant", "gpu_model", "state"),
    rows=gpu_seconds(Total.ALLOCATED),
)

ALLOCATED_COST = Metric[Snapshot](
    name="gputally_allocated_cost_total",
    kind=MetricType.COUNTER,
    help="Cost of the allocated GPU-seconds that have a price, in units of the currency.",
    labels=("tier", "tenant", "gpu_model", "state", "currency"),
    rows=cost(Total.COST),
)

ALLOCATED_GPUS = Metric[Snapshot](
    name="gputally_allocated_gpus",
    kind=MetricType.GAUGE,
    help="GPUs allocated to pods now, including fractions.",
    labels=("tier", "tenant", "gpu_model"),
    rows=allocated_gpus,
)

UNPRICED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_unpriced_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="Allocated GPU-seconds without a matching price rule, which no cost includes.",
    labels=("tier", "tenant", "gpu_model"),
    rows=gpu_seconds(Total.UNPRICED),
)

PURCHASED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_allocated_purchase_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="Allocated GPU-seconds by the purchase option of the node: on-demand, spot, reserved, or unknown without a "
    "price.",
    labels=("tier", "tenant", "purchase"),
    rows=gpu_seconds(Total.PURCHASED),
    reference_only=True,
)

UNOBSERVED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_unobserved_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds in observation gaps, where an allocation ended unobserved and is charged only up to the gap.",
    labels=("tier", "tenant", "gpu_model"),
    rows=gpu_seconds(Total.UNOBSERVED),
)

STARTING_OLDEST = Metric[Snapshot](
    name="gputally_starting_oldest_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="When the pod was bound that has held GPUs for the longest time without a container that ran; no row without "
    "one.",
    labels=("tier", "tenant"),
    rows=oldest_starting,
)

METRICS = (
    *(ALLOCATED_GPU_SECONDS, ALLOCATED_COST, ALLOCATED_GPUS, UNPRICED_GPU_SECONDS, UNOBSERVED_GPU_SECONDS),
    PURCHASED_GPU_SECONDS,
    STARTING_OLDEST,
)


JOB_GPU_SECONDS = Metric[Snapshot](
    name="gputally_job_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds of jobs by how they ended, counted once a job has ended and its pods have released their GPUs.",
    labels=("tier", "tenant", "outcome"),
    rows=gpu_seconds(Total.JOB),
)

JOBS_ENDED_EARLY = Metric[Snapshot](
    name="gputally_jobs_ended_early_total",
    kind=MetricType.COUNTER,
    help=(
        "Jobs that preemptions ended, complete with a preempted pod as a success or failed only by preemptions, by the "
        "tier and tenant with most of the Job's GPU-time."
    ),
    labels=("tier", "tenant", "outcome"),
    rows=counts(Total.ENDED_EARLY),
)

JOB_METRICS = (JOB_GPU_SECONDS, JOBS_ENDED_EARLY)
