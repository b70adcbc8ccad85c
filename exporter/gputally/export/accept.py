"""Accepts connections on listening sockets, each with the current certificates."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from gputally.export.access_policy import AccessPolicy
from gputally.export.connection import Connection, IdleConnections
from gputally.export.turns import client_address

HANDSHAKE_SECONDS: Final = 10.0
_SWEEP_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 1.0
"""Wait before accepting again after the system has run out of resources."""

logger = logging.getLogger(__name__)


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
        acceptor.sweep()
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

    def sweep(self) -> None:
        self._timers[self] = self._loop.call_later(_SWEEP_SECONDS, self.sweep)
        self._idle.close_expired(tls=self._policy_source().tls)

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
