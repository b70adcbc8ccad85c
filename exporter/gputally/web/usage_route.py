"""`/v1/usage` of an agent: its measurements, for an aggregator."""

from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import web

from gputally.exposition.negotiation import gzip_accepted
from gputally.model.usage import UsageReport
from gputally.web.server import compressed, joined

PATH: Final = "/v1/usage"


def usage_route(report: Callable[[], UsageReport]) -> web.AbstractRouteDef:
    """A route that serves the report as JSON."""
    encode = msgspec.json.Encoder().encode

    async def usage(request: web.Request) -> web.Response:
        body, headers = encode(report()), {"Vary": "Accept-Encoding"}
        if gzip_accepted(joined(request, "Accept-Encoding")):
            body, headers["Content-Encoding"] = compressed(body), "gzip"
        return web.Response(body=body, content_type="application/json", headers=headers)

    return web.get(PATH, usage)
