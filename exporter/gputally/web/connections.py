"""Accepts connections, each with the current certificates, and limits their number and their idle time."""

import asyncio
import logging
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from aiohttp.web_request import BaseRequest

from gputally.web.access_policy import AccessPolicy
from gputally.web.turns import client_address

MAX_CONNECTIONS: Final = 128
"""Above this number of idle connections, one of the client with most of them is closed: the longest idle one."""
IDLE_SECONDS: Final = 75.0
"""For a whole request to arrive, and then for the client to read the response and send the next request."""
LINE_BYTES: Final = 8190
"""Limit of the request line, and of each header."""
HEADERS: Final = {
    "Server": "gputally",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "deny",
}
"""Responses are current data for one client: they must not be executed, framed, sniffed or cached."""
_NO_LINGER: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with 0 s."""

logger = logging.getLogger(__name__)
HANDSHAKE_SECONDS: Final = 10.0
_SWEEP_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 1.0
"""Wait before accepting again after the system has run out of resources."""


class Connection(web.RequestHandler):
    """One connection. It counts as idle until its first request, including the handshake."""

    def __init__(
        self,
        server: web.Server,
        idle_connections: "IdleConnections",
        *,
        tls: ssl.SSLContext | None = None,
        client: str = "",
    ) -> None:
        """Create it in the task that opens it. It reads no request bodies: an unread body ends the connection."""
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type] # aiohttp's own servers pass None, too
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=0,
            max_line_size=LINE_BYTES,
            max_field_size=LINE_BYTES,
            auto_decompress=False,
        )
        self.idle_connections = idle_connections
        self.tls = tls
        self.client = client
        self._opening = asyncio.current_task()
        idle_connections.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop tracking the connection."""
        self.idle_connections.remove(self)
        super().connection_lost(exc)

    def abort(self) -> None:
        """Close it immediately; the kernel discards what the client has not read."""
        if self.transport is not None:
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.transport.abort()
        elif self._opening is not None:
            self._opening.cancel()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it contains request data
    ) -> web.StreamResponse:
        """Respond to an invalid request or a bug; unlike aiohttp's, response and log contain no request data."""
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.error("a request failed", exc_info=exc)
        else:
            logger.debug("%s sent an invalid request", request.remote)
        if request.writer.output_size:
            raise ConnectionError("part of the response has been sent")
        response = web.Response(text=f"{HTTPStatus(status).phrase}\n", status=status, headers=HEADERS)
        response.force_close()
        return response


class IdleConnections:
    """The connections that wait for their clients, the longest idle first."""

    def __init__(self) -> None:
        self._since: dict[Connection, float] = {}

    def add(self, connection: Connection) -> None:
        """Add a connection; at the limit, close one: a client cannot displace those of clients with fewer."""
        if len(self._since) >= MAX_CONNECTIONS:
            [(busiest, _)] = Counter(each.client for each in self._since).most_common(1)
            self._close(next(each for each in self._since if each.client == busiest))
        self._since[connection] = time.monotonic()

    def remove(self, connection: Connection) -> None:
        """Remove a connection that is closed or no longer idle."""
        self._since.pop(connection, None)

    def close_expired(self, *, tls: ssl.SSLContext | None = None) -> None:
        """Close the connections that are idle for too long, or that use another TLS context than `tls`."""
        oldest = time.monotonic() - IDLE_SECONDS
        for connection in [each for each, since in self._since.items() if since < oldest or each.tls is not tls]:
            self._close(connection)

    @contextmanager
    def served(self, connection: Connection) -> Iterator[None]:
        """The connection is not idle while its response is prepared; afterwards its idle time starts again."""
        self.remove(connection)
        try:
            yield
        finally:
            if connection.transport is not None:
                self._since[connection] = time.monotonic()

    def _close(self, connection: Connection) -> None:
        self.remove(connection)
        connection.abort()


@web.middleware
async def served(request: web.Request, handler: Handler) -> web.StreamResponse:
    """See `IdleConnections.served`."""
    connection = request.protocol
    assert isinstance(connection, Connection)
    with connection.idle_connections.served(connection):
        return await handler(request)


@asynccontextmanager
async def accepting(
    server: web.Server, listeners: Sequence[socket.socket], policy_source: Callable[[], AccessPolicy]
) -> AsyncIterator[None]:
    """While the context is open, `server` handles all connections, over TLS if the current access policy says so.

    asyncio's own server cannot replace its TLS context and does not limit connections.
    """
    acceptor = _Acceptor(server, policy_source)
    try:
        for listener in listeners:
            listener.settimeout(0)
            acceptor.watch(listener)
        yield
    finally:
        await acceptor.close(listeners)


class _Acceptor:
    def __init__(self, server: web.Server, policy_source: Callable[[], AccessPolicy]) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = server
        self._policy_source = policy_source
        self._idle = IdleConnections()
        self._opening: set[asyncio.Task[None]] = set()
        self._timers: dict[object, asyncio.TimerHandle] = {}

    def watch(self, listener: socket.socket) -> None:
        self._timers.pop(listener, None)
        self._loop.add_reader(listener, self._accept, listener)

    def _sweep(self) -> None:
        """Close expired connections, and look again while there are any connections."""
        del self._timers[self]
        self._idle.close_expired(tls=self._policy_source().tls)
        if self._server.connections or self._opening:
            self._sweep_later()

    def _sweep_later(self) -> None:
        if self not in self._timers:
            self._timers[self] = self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    async def close(self, listeners: Sequence[socket.socket]) -> None:
        for listener in listeners:
            self._loop.remove_reader(listener)
        for timer in self._timers.values():
            timer.cancel()
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)

    def _accept(self, listener: socket.socket) -> None:
        try:
            accepted, (address, *_) = listener.accept()
        except (BlockingIOError, ConnectionError):  # the client has already disconnected
            return
        except OSError as error:
            logger.error("cannot accept connections: %s", error.strerror)  # noqa: TRY400 - a known state
            self._loop.remove_reader(listener)
            self._timers[listener] = self._loop.call_later(_PAUSE_SECONDS, self.watch, listener)
            return
        task = self._loop.create_task(self._open(accepted, client_address(address)), name="connection")
        self._opening.add(task)
        task.add_done_callback(lambda task: self._opened(task, accepted))
        self._sweep_later()

    def _opened(self, task: asyncio.Task[None], accepted: socket.socket) -> None:
        self._opening.discard(task)
        if task.cancelled():  # possibly before it started
            accepted.close()

    async def _open(self, accepted: socket.socket, client: str) -> None:
        """The handshake, if there is one; then aiohttp takes over."""
        accepted.settimeout(0)
        tls = self._policy_source().tls
        timeout = HANDSHAKE_SECONDS if tls else None
        connection = Connection(self._server, self._idle, tls=tls, client=client)
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=timeout,
                ssl_shutdown_timeout=timeout,
            )
        except OSError as error:  # such as a rejected certificate, or a client without TLS
            logger.debug("TLS handshake failed: %s", error)
        finally:
            if connection.transport is None:
                self._idle.remove(connection)
