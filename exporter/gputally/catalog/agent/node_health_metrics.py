"""Health of the agent itself."""

from collections.abc import Iterator

from gputally.catalog.agent.node_view import NodeView
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.units import US_PER_SECOND


def _time(us: int | None) -> Iterator[Row]:
    """No row before the first event: any timestamp would be wrong."""
    if us is not None:
        yield Row((), us / US_PER_SECOND)


AGENT_INFO = Metric[NodeView](
    name="gputally_agent_info",
    kind=MetricType.INFO,
    help="Version of the agent, of the Python it runs on, and of the driver and NVML it reads.",
    labels=("version", "python_version", "driver_version", "nvml_version"),
    rows=lambda view: [Row((view.health.version, view.health.python, view.health.driver, view.health.nvml), 1)],
)

GPU_READS = Metric[NodeView](
    name="gputally_agent_gpu_reads_total",
    kind=MetricType.COUNTER,
    help="GPU readings by outcome; lost, hung and failed readings return no data.",
    labels=("outcome",),
    rows=lambda view: (Row((outcome,), count) for outcome, count in view.health.reads.items()),
)

LAST_GPU_READ = Metric[NodeView](
    name="gputally_agent_last_gpu_read_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time of the last reading of any GPU.",
    rows=lambda view: _time(view.health.last_read_us),
)

KUBELET_POLLS = Metric[NodeView](
    name="gputally_agent_kubelet_polls_total",
    kind=MetricType.COUNTER,
    help="Kubelet polls for GPU allocations, by outcome.",
    labels=("outcome",),
    rows=lambda view: (Row((outcome,), count) for outcome, count in view.health.polls.items()),
)

LAST_KUBELET_POLL = Metric[NodeView](
    name="gputally_agent_last_kubelet_poll_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time when the kubelet last reported GPU allocations.",
    rows=lambda view: _time(view.devices.allocations_us),
)

UNKNOWN_DEVICES = Metric[NodeView](
    name="gputally_agent_unknown_devices",
    kind=MetricType.GAUGE,
    help="Devices that the kubelet reports as allocated but that match no GPU of this node.",
    rows=lambda view: [Row((), view.devices.unknown_devices)],
)

DROPPED_CONTAINERS = Metric[NodeView](
    name="gputally_agent_dropped_containers_total",
    kind=MetricType.COUNTER,
    help="Ended containers that were removed from the journal early because it was full.",
    rows=lambda view: [Row((), view.devices.dropped)],
)

CERTIFICATE_EXPIRY = Metric[NodeView](
    name="gputally_agent_certificate_expiry_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Expiry of the certificate that the agent serves with.",
    rows=lambda view: [] if (expiry := view.health.certificate()) is None else [Row((), expiry)],
)

METRICS = (
    AGENT_INFO,
    GPU_READS,
    LAST_GPU_READ,
    KUBELET_POLLS,
    LAST_KUBELET_POLL,
    UNKNOWN_DEVICES,
    DROPPED_CONTAINERS,
    CERTIFICATE_EXPIRY,
)
