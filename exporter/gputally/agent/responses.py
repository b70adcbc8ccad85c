"""What an agent serves, real or simulated: the metrics of its node, and its measurements for an aggregator."""

from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import web

from gputally.agent.gpu_loop import GpuLoop
from gputally.catalog.agent.node_metrics import NODE
from gputally.catalog.agent.node_view import NodeView
from gputally.exposition.text_format import render
from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.health import NodeHealth
from gputally.model.usage import UsageCursor, UsageReport
from gputally.web.responses import packed, response, wants_gzip

PATH: Final = "/v1/usage"


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


def usage_route(report: Callable[[UsageCursor | None], UsageReport]) -> web.AbstractRouteDef:
    """A route that serves the report as JSON: what changed after the cursor of the query `since`, if it has one."""
    encode = msgspec.json.Encoder().encode

    async def usage(request: web.Request) -> web.Response:
        cursor = UsageCursor.parsed(request.query.get("since", ""))
        gzipped = wants_gzip(request)
        return response(packed(encode(report(cursor)), gzipped=gzipped), gzipped=gzipped)

    return web.get(PATH, usage)
