"""How well each GPU or MIG device uses its hardware, from GPM counters (Hopper and later).

Utilisation only says that something ran. The rate of these counters is a share of the device: its multiprocessors,
their warps, its tensor cores or its memory bandwidth. A device without GPM counters has no rows.
"""

from collections.abc import Callable, Iterator

from gputally.catalog.agent.gpu_metrics import parts
from gputally.catalog.agent.node_view import NodeView
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.devices import BUSY, Efficiency
from gputally.model.units import US_PER_SECOND


def _efficiency(value: Callable[[Efficiency], int], *, per: int) -> Callable[[NodeView], Iterator[Row]]:
    """A row for each part with GPM counters."""
    return parts(lambda part: None if part.efficiency is None else value(part.efficiency) / per)


PROFILED = Metric[NodeView](
    name="gputally_gpu_profiled_seconds_total",
    kind=MetricType.COUNTER,
    help="Time in which the activity of the device's units is known; only on Hopper and later.",
    labels=("gpu", "device"),
    rows=_efficiency(lambda efficiency: efficiency.time_us, per=US_PER_SECOND),
)

SM_ACTIVE = Metric[NodeView](
    name="gputally_gpu_sm_active_seconds_total",
    kind=MetricType.COUNTER,
    help="Share of multiprocessors with work, integrated over the profiled time.",
    labels=("gpu", "device"),
    rows=_efficiency(lambda efficiency: efficiency.sm_active, per=US_PER_SECOND * BUSY),
)

SM_OCCUPANCY = Metric[NodeView](
    name="gputally_gpu_sm_occupancy_seconds_total",
    kind=MetricType.COUNTER,
    help="Resident warps as a share of those that the multiprocessors can hold, integrated over the profiled time.",
    labels=("gpu", "device"),
    rows=_efficiency(lambda efficiency: efficiency.sm_occupancy, per=US_PER_SECOND * BUSY),
)

TENSOR_ACTIVE = Metric[NodeView](
    name="gputally_gpu_tensor_active_seconds_total",
    kind=MetricType.COUNTER,
    help="Share of the time in which tensor cores were active, integrated over the profiled time.",
    labels=("gpu", "device"),
    rows=_efficiency(lambda efficiency: efficiency.tensor_active, per=US_PER_SECOND * BUSY),
)

DRAM_ACTIVE = Metric[NodeView](
    name="gputally_gpu_dram_active_seconds_total",
    kind=MetricType.COUNTER,
    help="Share of the memory bandwidth in use, integrated over the profiled time.",
    labels=("gpu", "device"),
    rows=_efficiency(lambda efficiency: efficiency.dram_active, per=US_PER_SECOND * BUSY),
)

METRICS = (PROFILED, SM_ACTIVE, SM_OCCUPANCY, TENSOR_ACTIVE, DRAM_ACTIVE)
