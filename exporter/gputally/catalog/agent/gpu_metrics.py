"""Driver metrics of each GPU of the node and of each MIG device.

The label `gpu` is the UUID of the physical GPU, `device` the UUID of the GPU or of one of its MIG devices.
A value that the GPU does not support has no row.
"""

from collections.abc import Callable, Iterator

from gputally.catalog.agent.node_view import NodeView
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.devices import BUSY, GpuCondition, Part, Reading

GRAVE_XIDS = (13, 31, 43, 45, 48, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140)
"""Faults of programs and memory, ECC, NVLink, a GPU off the bus, a hung GSP. Source: NVIDIA's page "Xid Errors"."""
_MILLI = 1000
_HERTZ_PER_MHZ = 1_000_000
_NS_PER_SECOND = 1_000_000_000


def parts(value: Callable[[Part], float | None]) -> Callable[[NodeView], Iterator[Row]]:
    """A row for each part that has a value."""

    def rows(view: NodeView) -> Iterator[Row]:
        for reading in view.readings:
            for part in reading.parts:
                found = value(part)
                if found is not None:
                    yield Row((reading.gpu.uuid, part.uuid), found)

    return rows


def _gpus(value: Callable[[GpuCondition], float | None], *, per: int = 1) -> Callable[[NodeView], Iterator[Row]]:
    """A row for each GPU that has a value, in units of `per`."""

    def rows(view: NodeView) -> Iterator[Row]:
        for reading in view.readings:
            found = value(reading.condition)
            if found is not None:
                yield Row((reading.gpu.uuid,), found / per)

    return rows


def _remapped(view: NodeView) -> Iterator[Row]:
    for reading in view.readings:
        condition = reading.condition
        rows = {
            "correctable": condition.rows_remapped_correctable,
            "uncorrectable": condition.rows_remapped_uncorrectable,
        }
        yield from (Row((reading.gpu.uuid, cause), value) for cause, value in rows.items() if value is not None)


def _info(view: NodeView) -> Iterator[Row]:
    for reading in view.readings:
        gpu = reading.gpu
        for part in reading.parts:
            minor = "" if gpu.minor is None else str(gpu.minor)
            yield Row((gpu.uuid, part.uuid, gpu.model, part.profile, minor, gpu.pci_bus_id, part.source.value), 1)


def _utilization(part: Part) -> float | None:
    """The mean over the time that the last reading covers."""
    time_us = sum(span.to_us - span.from_us for span in part.busy)
    busy = sum((span.to_us - span.from_us) * span.busy for span in part.busy)
    return busy / time_us / BUSY if time_us else None


def _up(view: NodeView) -> Iterator[Row]:
    yield from (Row((reading.gpu.uuid,), 1) for reading in view.readings)
    yield from (Row((uuid,), 0) for uuid in view.down)


def _clocks(view: NodeView) -> Iterator[Row]:
    for reading in view.readings:
        for clock, megahertz in (("sm", reading.condition.sm_clock), ("memory", reading.condition.memory_clock)):
            if megahertz is not None:
                yield Row((reading.gpu.uuid, clock), megahertz * _HERTZ_PER_MHZ)


def _throttle_reasons(view: NodeView) -> Iterator[Row]:
    for reading in view.readings:
        for reason in sorted(reading.condition.throttle_reasons or ()):
            yield Row((reading.gpu.uuid, reason), 1)


def _throttled(view: NodeView) -> Iterator[Row]:
    for reading in view.readings:
        for reason, nanoseconds in reading.condition.throttled:
            yield Row((reading.gpu.uuid, reason), nanoseconds / _NS_PER_SECOND)


def _ecc(view: NodeView) -> Iterator[Row]:
    for reading in view.readings:
        condition = reading.condition
        for kind, count in (("corrected", condition.ecc_corrected), ("uncorrected", condition.ecc_uncorrected)):
            if count is not None:
                yield Row((reading.gpu.uuid, kind), count)


def _xids(view: NodeView) -> Iterator[Row]:
    """Start grave XIDs at 0: the first error is often the last one, and a rate must show it."""
    counts = {(gpu.uuid, xid): 0 for gpu in view.devices.gpus for xid in GRAVE_XIDS}
    counts |= {key: count for key, (count, _) in view.xids.items()}
    return (Row((gpu, str(xid)), count) for (gpu, xid), count in counts.items())


def _xid_times(view: NodeView) -> Iterator[Row]:
    return (Row((gpu, str(xid)), last_us / 1e6) for (gpu, xid), (_, last_us) in sorted(view.xids.items()))


def _mig(reading: Reading) -> Row:
    return Row((reading.gpu.uuid,), int(reading.mig))


GPU_INFO = Metric[NodeView](
    name="gputally_gpu_info",
    kind=MetricType.INFO,
    help="Identity of each device, and the source of its utilisation (samples, gpm, rates or none).",
    labels=("gpu", "device", "gpu_model", "profile", "minor", "pci_bus_id", "source"),
    rows=_info,
)

GPU_UP = Metric[NodeView](
    name="gputally_gpu_up",
    kind=MetricType.GAUGE,
    help="Whether the GPU responds: 0 when the driver has lost it or a call to it hangs.",
    labels=("gpu",),
    rows=_up,
)

UTILIZATION = Metric[NodeView](
    name="gputally_gpu_utilization_ratio",
    kind=MetricType.GAUGE,
    help="Share of the time since the last reading in which anything ran on the device.",
    labels=("gpu", "device"),
    rows=parts(_utilization),
)

MEMORY_USED = Metric[NodeView](
    name="gputally_gpu_memory_used_bytes",
    kind=MetricType.GAUGE,
    help="Memory in use on the device, excluding driver-reserved memory where the driver reports it separately.",
    labels=("gpu", "device"),
    rows=parts(lambda part: part.memory_used),
)

MEMORY_TOTAL = Metric[NodeView](
    name="gputally_gpu_memory_total_bytes",
    kind=MetricType.GAUGE,
    help="Total memory of the device.",
    labels=("gpu", "device"),
    rows=parts(lambda part: part.memory_total),
)

PROCESSES = Metric[NodeView](
    name="gputally_gpu_processes",
    kind=MetricType.GAUGE,
    help="Processes that have the device open.",
    labels=("gpu", "device"),
    rows=parts(lambda part: None if part.processes is None else len(part.processes)),
)

POWER = Metric[NodeView](
    name="gputally_gpu_power_watts",
    kind=MetricType.GAUGE,
    help="Power draw of the GPU, averaged by the driver over the last second on most models.",
    labels=("gpu",),
    rows=_gpus(lambda condition: condition.power, per=_MILLI),
)

POWER_LIMIT = Metric[NodeView](
    name="gputally_gpu_power_limit_watts",
    kind=MetricType.GAUGE,
    help="Power above which the driver throttles the GPU.",
    labels=("gpu",),
    rows=_gpus(lambda condition: condition.power_limit, per=_MILLI),
)

TEMPERATURE = Metric[NodeView](
    name="gputally_gpu_temperature_celsius",
    kind=MetricType.GAUGE,
    help="Temperature of the GPU.",
    labels=("gpu",),
    rows=_gpus(lambda condition: condition.temperature),
)

CLOCK = Metric[NodeView](
    name="gputally_gpu_clock_hertz",
    kind=MetricType.GAUGE,
    help="Clock frequency of the multiprocessors (sm) and of the memory.",
    labels=("gpu", "clock"),
    rows=_clocks,
)

THROTTLE_REASON = Metric[NodeView](
    name="gputally_gpu_throttle_reason",
    kind=MetricType.GAUGE,
    help="1 for each reason that currently throttles the clocks.",
    labels=("gpu", "reason"),
    rows=_throttle_reasons,
)

THROTTLED = Metric[NodeView](
    name="gputally_gpu_throttled_seconds_total",
    kind=MetricType.COUNTER,
    help="Time the clocks were throttled since the driver was loaded, by reason.",
    labels=("gpu", "reason"),
    rows=_throttled,
)

ECC_ERRORS = Metric[NodeView](
    name="gputally_gpu_ecc_errors_total",
    kind=MetricType.COUNTER,
    help="Memory errors over the GPU's lifetime, corrected and uncorrected.",
    labels=("gpu", "kind"),
    rows=_ecc,
)

ROWS_REMAPPED = Metric[NodeView](
    name="gputally_gpu_remapped_rows_total",
    kind=MetricType.COUNTER,
    help="Memory rows replaced by spare rows over the GPU's lifetime, after correctable or uncorrectable errors.",
    labels=("gpu", "cause"),
    rows=_remapped,
)

ROW_REMAP_PENDING = Metric[NodeView](
    name="gputally_gpu_row_remap_pending",
    kind=MetricType.GAUGE,
    help="1 while the replacement of a memory row waits for a GPU reset.",
    labels=("gpu",),
    rows=_gpus(lambda condition: condition.rows_pending),
)

ROW_REMAP_FAILED = Metric[NodeView](
    name="gputally_gpu_row_remap_failed",
    kind=MetricType.GAUGE,
    help="1 after a memory row could not be replaced: replace the GPU.",
    labels=("gpu",),
    rows=_gpus(lambda condition: condition.rows_failed),
)

XIDS = Metric[NodeView](
    name="gputally_gpu_xid_events_total",
    kind=MetricType.COUNTER,
    help="XID errors that the driver reported since the agent started, by code.",
    labels=("gpu", "xid"),
    rows=_xids,
)

XID_TIME = Metric[NodeView](
    name="gputally_gpu_xid_last_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time when the driver last reported the XID error.",
    labels=("gpu", "xid"),
    rows=_xid_times,
)

MIG = Metric[NodeView](
    name="gputally_gpu_mig_enabled",
    kind=MetricType.GAUGE,
    help="Whether MIG is enabled on the GPU.",
    labels=("gpu",),
    rows=lambda view: map(_mig, view.readings),
)

METRICS = (
    *(GPU_INFO, GPU_UP, UTILIZATION, MEMORY_USED, MEMORY_TOTAL, PROCESSES, POWER, POWER_LIMIT, TEMPERATURE, CLOCK),
    *(THROTTLE_REASON, THROTTLED, ECC_ERRORS, ROWS_REMAPPED, ROW_REMAP_PENDING, ROW_REMAP_FAILED, XIDS, XID_TIME, MIG),
)
