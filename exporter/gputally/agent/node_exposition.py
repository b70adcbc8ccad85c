"""The exposition of a node, which its real and its simulated agent share."""

from gputally.agent.gpu_loop import GpuLoop
from gputally.catalog.agent.node_metrics import NODE
from gputally.catalog.agent.node_view import NodeView
from gputally.export.text import render
from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.measured.node_health import NodeHealth


def node_view(reading: GpuLoop, books: DeviceAccounts, health: NodeHealth, *, now_us: int) -> NodeView:
    """What there is to show at `now_us`."""
    return NodeView(
        health=health,
        readings=tuple(reading.readings.values()),
        down=tuple(sorted(reading.down)),
        xids=reading.xids(),
        devices=books.snapshot(now_us),
    )


def exposition(view: NodeView, *, openmetrics: bool, more: bytes = b"") -> bytes:
    """What `/metrics` answers: all metrics of the node, then `more`."""
    return render(((metric, metric.rows(view)) for metric in NODE), openmetrics=openmetrics, more=more)
