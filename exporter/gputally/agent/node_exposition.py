"""The metrics exposition of a node, shared by the real and the simulated agent."""

from gputally.agent.gpu_loop import GpuLoop
from gputally.catalog.agent.node_metrics import NODE
from gputally.catalog.agent.node_view import NodeView
from gputally.exposition.text_format import render
from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.health import NodeHealth


def node_view(gpu_loop: GpuLoop, accounts: DeviceAccounts, health: NodeHealth, *, now_us: int) -> NodeView:
    """The input of the node metrics at `now_us`."""
    return NodeView(
        health=health,
        readings=tuple(gpu_loop.readings.values()),
        down=tuple(sorted(gpu_loop.down)),
        xids=gpu_loop.xids(),
        devices=accounts.snapshot(now_us),
    )


def exposition(view: NodeView, *, openmetrics: bool, more: bytes = b"") -> bytes:
    """The response of `/metrics`: all metrics of the node, then `more`."""
    return render(((metric, metric.rows(view)) for metric in NODE), openmetrics=openmetrics, more=more)
