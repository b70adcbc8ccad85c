"""A load balancer in front of API servers; some connections reach a server with a wrong clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate, parsedate_to_datetime
from typing import TYPE_CHECKING

from aiohttp import ClientSession, ClientTimeout, web

if TYPE_CHECKING:
    from asyncio import Transport

DAY_S = 24 * 3600


class LyingProxy:
    """Forwards requests to `server`; on a lying connection, every response has a wrong Date."""

    def __init__(self, server: ClientSession) -> None:
        self.url = ""
        self.lies = 0
        """The number of next new connections that lie."""
        self.lied = 0
        """The number of responses with a wrong Date."""
        self._server = server
        self._connections: dict[Transport, bool] = {}
        self._watching: Transport | None = None

    def lie(self) -> None:
        """Make the next new connection lie; breaks the open watch."""
        self.lies = 1
        if self._watching:
            self._watching.abort()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Forward one request."""
        is_lie = self._is_lie(request)
        forwarded = {name: request.headers[name] for name in ("Authorization", "Accept") if name in request.headers}
        timeout = ClientTimeout(total=None)
        async with self._server.get(request.rel_url, headers=forwarded, timeout=timeout) as answer:
            date = parsedate_to_datetime(answer.headers["Date"]).timestamp() + DAY_S * is_lie
            headers = {"Date": formatdate(date, usegmt=True), "Content-Type": answer.headers["Content-Type"]}
            response = web.StreamResponse(status=answer.status, headers=headers)
            self.lied += is_lie
            try:
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
            except ConnectionError:
                pass  # the client has disconnected
            finally:
                if answer.connection and answer.connection.transport:
                    answer.connection.transport.abort()  # an open watch with TLS would not close in time
        return response

    def _is_lie(self, request: web.Request) -> bool:
        transport = request.transport
        assert transport
        if "watch" in request.query:
            self._watching = transport
        if transport not in self._connections:
            self._connections[transport] = self.lies > 0
            self.lies = max(0, self.lies - 1)
        return self._connections[transport]


@asynccontextmanager
async def lying_proxy(server: ClientSession) -> AsyncIterator[LyingProxy]:
    """Serve at a free port."""
    proxy = LyingProxy(server)
    app = web.Application()
    app.router.add_get("/{path:.*}", proxy.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield proxy
    finally:
        await runner.cleanup()
