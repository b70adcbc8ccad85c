"""Usage of the node's GPUs, in total and by container: counters from the accounting of the agent.

GPU-seconds count physical GPUs: a MIG device or a replica counts as its share of a GPU.
"""

from collections.abc import Callable, Iterator

from gputally.catalog.agent.node_view import NodeView
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.metering.reporting import AssignmentTotals
from gputally.metering.sums import MeasuredWork
from gputally.model.units import GPU, GPU_SECOND, US_PER_SECOND

STATES = ("held", "free", "unhealthy", "unsliced", "unknown", "lost")
_ASSIGNMENT = ("gpu", "device", "namespace", "pod", "container")
_MJ_PER_JOULE = 1000


def _work(value: Callable[[MeasuredWork], int], *, per: int = GPU_SECOND) -> Callable[[NodeView], Iterator[Row]]:
    return lambda view: (Row((gpu.uuid,), value(gpu.work) / per, gpu.since_us) for gpu in view.devices.gpus)


def _states(view: NodeView) -> Iterator[Row]:
    for gpu in view.devices.gpus:
        for state in STATES:
            yield Row((gpu.uuid, state), getattr(gpu.states, state) / GPU_SECOND, gpu.since_us)


def _watermarks(view: NodeView) -> Iterator[Row]:
    return (Row((gpu.uuid,), gpu.watermark_us / US_PER_SECOND) for gpu in view.devices.gpus)


def _assignments(value: Callable[[AssignmentTotals], int | None], *, per: int) -> Callable[[NodeView], Iterator[Row]]:
    """A row for each container with a current or past allocation, if it has a value."""

    def rows(view: NodeView) -> Iterator[Row]:
        for assignment in view.devices.assignments:
            found = value(assignment)
            if found is not None:
                labels = (assignment.gpu, assignment.part, assignment.namespace, assignment.pod, assignment.container)
                yield Row(labels, found / per)

    return rows


STATE_GPU_SECONDS = Metric[NodeView](
    name="gputally_gpu_state_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds since the agent first read the GPU, by state; the states add up to the elapsed time.",
    labels=("gpu", "state"),
    rows=_states,
)

MEASURED = Metric[NodeView](
    name="gputally_gpu_measured_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds with known utilisation.",
    labels=("gpu",),
    rows=_work(lambda work: work.measured),
)

USED = Metric[NodeView](
    name="gputally_gpu_used_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds in use: the utilisation integrated over time.",
    labels=("gpu",),
    rows=_work(lambda work: work.used),
)

UNATTRIBUTED = Metric[NodeView](
    name="gputally_gpu_unallocated_used_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds used outside any allocation.",
    labels=("gpu",),
    rows=_work(lambda work: work.unattributed),
)

UNKNOWN = Metric[NodeView](
    name="gputally_gpu_unknown_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds used while the kubelet did not report the GPU's allocation.",
    labels=("gpu",),
    rows=_work(lambda work: work.unknown),
)

ENERGY = Metric[NodeView](
    name="gputally_gpu_energy_joules_total",
    kind=MetricType.COUNTER,
    help="Energy consumed by the GPU since the agent first read it.",
    labels=("gpu",),
    rows=_work(lambda work: work.energy, per=_MJ_PER_JOULE),
)

UNALLOCATED_ENERGY = Metric[NodeView](
    name="gputally_gpu_unallocated_energy_joules_total",
    kind=MetricType.COUNTER,
    help="Energy consumed by the GPU outside any allocation.",
    labels=("gpu",),
    rows=_work(lambda work: work.unallocated_energy, per=_MJ_PER_JOULE),
)

ENERGY_RESETS = Metric[NodeView](
    name="gputally_gpu_energy_resets_total",
    kind=MetricType.COUNTER,
    help="Resets of the driver's energy counter, caused by a driver reload or a GPU reset.",
    labels=("gpu",),
    rows=_work(lambda work: work.energy_resets, per=1),
)

ENERGY_FAULTS = Metric[NodeView](
    name="gputally_gpu_energy_faults_total",
    kind=MetricType.COUNTER,
    help="Energy readings that exceed twice the power limit since the previous reading; they are capped at that value.",
    labels=("gpu",),
    rows=_work(lambda work: work.energy_faults, per=1),
)

WATERMARK = Metric[NodeView](
    name="gputally_gpu_watermark_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time up to which the utilisation of the GPU is accounted.",
    labels=("gpu",),
    rows=_watermarks,
)

CONTAINER_SHARE = Metric[NodeView](
    name="gputally_container_gpu_share_ratio",
    kind=MetricType.GAUGE,
    help="Share of the physical GPU that is allocated to the container, 0 after it has ended.",
    labels=_ASSIGNMENT,
    rows=_assignments(lambda assignment: assignment.share, per=GPU),
)

CONTAINER_ALLOCATED = Metric[NodeView](
    name="gputally_container_allocated_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds allocated to the container.",
    labels=_ASSIGNMENT,
    rows=_assignments(lambda assignment: assignment.held, per=GPU_SECOND),
)

CONTAINER_MEASURED = Metric[NodeView](
    name="gputally_container_measured_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="Allocated GPU-seconds with known utilisation.",
    labels=_ASSIGNMENT,
    rows=_assignments(lambda assignment: assignment.measured, per=GPU_SECOND),
)

CONTAINER_USED = Metric[NodeView](
    name="gputally_container_used_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds used by the container.",
    labels=_ASSIGNMENT,
    rows=_assignments(lambda assignment: assignment.used, per=GPU_SECOND),
)

CONTAINER_BURST = Metric[NodeView](
    name="gputally_container_burst_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="Used GPU-seconds above the share allocated to the container.",
    labels=_ASSIGNMENT,
    rows=_assignments(lambda assignment: assignment.burst, per=GPU_SECOND),
)

CONTAINER_MEMORY = Metric[NodeView](
    name="gputally_container_gpu_memory_bytes",
    kind=MetricType.GAUGE,
    help="GPU memory used by the container's processes, or split by share where processes cannot be attributed.",
    labels=_ASSIGNMENT,
    rows=_assignments(lambda assignment: assignment.memory_now, per=1),
)

CONTAINER_ENERGY = Metric[NodeView](
    name="gputally_container_gpu_energy_joules_total",
    kind=MetricType.COUNTER,
    help="GPU energy attributed to the container by share of usage, or by share of allocation while the GPU was idle.",
    labels=_ASSIGNMENT,
    rows=_assignments(lambda assignment: assignment.energy, per=_MJ_PER_JOULE),
)

METRICS = (
    *(
        STATE_GPU_SECONDS,
        MEASURED,
        USED,
        UNATTRIBUTED,
        UNKNOWN,
        ENERGY,
        UNALLOCATED_ENERGY,
        ENERGY_RESETS,
        ENERGY_FAULTS,
    ),
    WATERMARK,
    *(CONTAINER_SHARE, CONTAINER_ALLOCATED, CONTAINER_MEASURED, CONTAINER_USED, CONTAINER_BURST, CONTAINER_MEMORY),
    CONTAINER_ENERGY,
)
