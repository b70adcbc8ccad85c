"""Usage of the GPUs allocated to pods, as far as agents have measured it."""

from collections.abc import Callable, Iterator

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.totals.total import Total
from gputally.catalog.aggregator.allocation_metrics import cost, gpu_seconds
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.units import GPU

_MILLIJOULES = 1000


def joules(total: Total) -> Callable[[Snapshot], Iterator[Row]]:
    """Rows of a family of energy in joules."""
    return lambda snapshot: (Row(p.labels, p.value / _MILLIJOULES, p.created_us) for p in snapshot.totals[total])


def allocation_differences(snapshot: Snapshot) -> Iterator[Row]:
    """Both sides of each pool with agents, as 0 when they agree."""
    return (Row(labels, quantity / GPU) for labels, quantity in snapshot.allocation_differences.items())


MEASURED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_measured_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="Allocated GPU-seconds for which the node's agent reports the utilisation.",
    labels=("tier", "tenant", "gpu_model"),
    rows=gpu_seconds(Total.MEASURED),
)

USED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_used_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds used by the pods that the GPUs are allocated to: utilisation integrated over the measured time.",
    labels=("tier", "tenant", "gpu_model"),
    rows=gpu_seconds(Total.USED),
)

BURST_GPU_SECONDS = Metric[Snapshot](
    name="gputally_burst_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="Used GPU-seconds above the allocated share.",
    labels=("tier", "tenant", "gpu_model"),
    rows=gpu_seconds(Total.BURST),
)

IDLE_COST = Metric[Snapshot](
    name="gputally_idle_cost_total",
    kind=MetricType.COUNTER,
    help="Cost of the measured GPU-seconds that were allocated but not used, in units of the currency.",
    labels=("tier", "tenant", "gpu_model", "currency"),
    rows=cost(Total.IDLE_COST),
)

ENERGY = Metric[Snapshot](
    name="gputally_energy_joules_total",
    kind=MetricType.COUNTER,
    help="Energy consumed by GPUs while they were allocated, by allocated share.",
    labels=("tier", "tenant", "gpu_model"),
    rows=joules(Total.ENERGY),
)

UNMATCHED_USAGE = Metric[Snapshot](
    name="gputally_unmatched_usage_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="Measured GPU-seconds of pods that the API server did not report, which have the tier unknown.",
    rows=gpu_seconds(Total.UNMATCHED),
)

UNATTRIBUTED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_unallocated_used_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds used outside any allocation.",
    labels=("gpu_model", "pool"),
    rows=gpu_seconds(Total.UNATTRIBUTED),
)

UNALLOCATED_ENERGY = Metric[Snapshot](
    name="gputally_unallocated_energy_joules_total",
    kind=MetricType.COUNTER,
    help="Energy consumed by GPUs outside any allocation.",
    labels=("gpu_model", "pool"),
    rows=joules(Total.UNALLOCATED_ENERGY),
)

ALLOCATION_DIFFERENCE = Metric[Snapshot](
    name="gputally_allocation_difference_gpus",
    kind=MetricType.GAUGE,
    help="GPUs that only the API server or only a kubelet reports as allocated, on nodes whose agent reported within a "
    "minute.",
    labels=("pool", "side"),
    rows=allocation_differences,
)

AGENT_RESTARTS = Metric[Snapshot](
    name="gputally_agent_restarts_total",
    kind=MetricType.COUNTER,
    help="Agent restarts, each of which lost the measurements since the agent's last response.",
    rows=lambda snapshot: [Row((), snapshot.agent_restarts)],
)

USAGE_FAULTS = Metric[Snapshot](
    name="gputally_usage_faults_total",
    kind=MetricType.COUNTER,
    help="Hours of usage, or containers with all their hours, that an agent reported and that are excluded: an earlier "
    "report was higher, or the usage exceeds the capacity of a GPU or of all GPUs of the node.",
    labels=("reason",),
    rows=lambda snapshot: [Row((fault.value,), count) for fault, count in snapshot.usage_faults.items()],
)

METRICS = (
    MEASURED_GPU_SECONDS,
    USED_GPU_SECONDS,
    BURST_GPU_SECONDS,
    IDLE_COST,
    ENERGY,
    UNMATCHED_USAGE,
    UNATTRIBUTED_GPU_SECONDS,
    UNALLOCATED_ENERGY,
    ALLOCATION_DIFFERENCE,
    AGENT_RESTARTS,
    USAGE_FAULTS,
)
