"""Connections: how many there may be, how long they may keep us waiting, and what is said to what is no request."""

import asyncio
import logging
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from aiohttp.web_request import BaseRequest

MOST: Final = 128
"""Beyond so many connections, the one that has waited longest for its client is closed."""
PATIENCE_SECONDS: Final = 75.0
"""For a whole request to come, and then for the answer to be read and the next request to come."""
LINE_BYTES: Final = 8190
"""Of the request line, and of each header."""
HEADERS: Final = {
    "Server": "gputally",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "deny",
}
"""Answers are data of this moment for whoever asked: nothing in them may run, be framed, guessed at or kept."""
_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""Linger for 0 s."""

logger = logging.getLogger(__name__)


class Connection(web.RequestHandler):
    """One connection, in the `crowd` of all, from before its handshake."""

    def __init__(self, server: web.Server, crowd: "Crowd", *, tls: ssl.SSLContext | None = None) -> None:
        """Made by the task that opens it. It reads no bodies: what is left of one ends the connection."""
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type] # None is what aiohttp's own servers pass for none
            keepalive_timeout=PATIENCE_SECONDS,
            lingering_time=0,
            max_line_size=LINE_BYTES,
            max_field_size=LINE_BYTES,
            auto_decompress=False,
        )
        self.crowd = crowd
        self.tls = tls
        self._opening = asyncio.current_task()
        crowd.welcome(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """It leaves."""
        self.crowd.leave(self)
        super().connection_lost(exc)

    def dismiss(self) -> None:
        """End it at once, whatever it is at; the system, too, forgets what the client has not read."""
        if self.transport is not None:
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()
        elif self._opening is not None:
            self._opening.cancel()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it repeats what was sent
    ) -> web.StreamResponse:
        """Answer what could not be parsed, or met a bug; neither answer nor log repeats what was sent, as aiohttp's."""
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.error("a request failed", exc_info=exc)
        else:
            logger.debug("%s sent an invalid request", request.remote)
        if request.writer.output_size:
            raise ConnectionError("part of the response has been sent")
        response = web.Response(text=f"{HTTPStatus(status).phrase}\n", status=status, headers=HEADERS)
        response.force_close()
        return response


class Crowd:
    """All connections that wait for their client, the one that has waited longest first."""

    def __init__(self) -> None:
        self._since: dict[Connection, float] = {}

    def welcome(self, connection: Connection) -> None:
        """Take it in; where there is no room, at the cost of the one that has waited longest."""
        if len(self._since) >= MOST:
            self._dismiss(next(iter(self._since)))
        self._since[connection] = time.monotonic()

    def leave(self, connection: Connection) -> None:
        """It is gone, or waits no longer."""
        self._since.pop(connection, None)

    def sweep(self, *, tls: ssl.SSLContext | None = None) -> None:
        """Close those that have kept us waiting for too long, or that came in by other certificates than `tls`."""
        oldest = time.monotonic() - PATIENCE_SECONDS
        for connection in [each for each, since in self._since.items() if since < oldest or each.tls is not tls]:
            self._dismiss(connection)

    @contextmanager
    def served(self, connection: Connection) -> Iterator[None]:
        """While it is we who work on an answer, its client need not fear; afterwards it waits anew."""
        self.leave(connection)
        try:
            yield
        finally:
            if connection.transport is not None:
                self._since[connection] = time.monotonic()

    def _dismiss(self, connection: Connection) -> None:
        self.leave(connection)
        connection.dismiss()


@web.middleware
async def served(request: web.Request, handler: Handler) -> web.StreamResponse:
    """See `Crowd.served`."""
    connection = request.protocol
    assert isinstance(connection, Connection)
    with connection.crowd.served(connection):
        return await handler(request)
