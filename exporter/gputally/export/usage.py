"""`/v1/usage` of an agent: what it measured, for an aggregator that shows the token."""

import hmac
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from gputally.export.negotiate import gzip_accepted
from gputally.export.web import compressed, joined
from gputally.model.usage import UsageReport

PATH: Final = "/v1/usage"

logger = logging.getLogger(__name__)


def usage_route(report: Callable[[], UsageReport], *, token: Callable[[], str] | None) -> web.AbstractRouteDef:
    """A route that answers with the report as JSON.

    `token` tells the bearer token as it stands; without it everyone is answered. One that cannot be read (OSError,
    ValueError) lets nobody in.
    """
    encode = msgspec.json.Encoder().encode

    async def usage(request: web.Request) -> web.Response:
        if token and not _is_shown(request, token):
            headers = {"WWW-Authenticate": 'Bearer realm="gputally"', "Cache-Control": "no-store"}
            return web.Response(text="a bearer token is needed\n", status=HTTPStatus.UNAUTHORIZED, headers=headers)
        body, headers = encode(report()), {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
        if gzip_accepted(joined(request, "Accept-Encoding")):
            body, headers["Content-Encoding"] = compressed(body), "gzip"
        return web.Response(body=body, content_type="application/json", headers=headers)

    return web.get(PATH, usage)


def _is_shown(request: web.Request, token: Callable[[], str]) -> bool:
    """Compared in a time that does not tell how much of it was right."""
    kind, _, shown = request.headers.get("Authorization", "").partition(" ")
    try:
        expected = token()
    except (OSError, ValueError) as error:
        logger.error("nobody is let in: the token cannot be read: %s", error)  # noqa: TRY400 - a known state
        return False
    return kind.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), expected.encode())
