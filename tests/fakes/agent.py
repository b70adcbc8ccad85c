"""An HTTP server in place of an agent, which serves /v1/usage as the test specifies."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from gputally.model.usage import UsageReport

Body = UsageReport | bytes


class FakeAgent:
    """Responds with `body`, or its result if it is callable; with a `token`, other requests get 401."""

    def __init__(self, body: Body | Callable[[], Body], *, token: str = "") -> None:
        self.body = body
        self.token = token
        self.status = 200
        self.requests = 0
        self.since: list[str | None] = []
        """The cursor of each request."""
        self.complete = asyncio.Event()
        """While cleared, responses pause after their first byte."""
        self.complete.set()
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Handle one request."""
        self.requests += 1
        self.since.append(request.query.get("since"))
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        body = self.body() if callable(self.body) else self.body
        encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
        response = web.StreamResponse(status=self.status, headers={"Location": "/elsewhere"})
        await response.prepare(request)
        await response.write(encoded[:1])
        await self.complete.wait()
        await response.write(encoded[1:])
        return response


@asynccontextmanager
async def serving(agent: FakeAgent, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeAgent]:
    """Serve the agent at its `url`."""
    application = web.Application()
    application.router.add_get("/v1/usage", agent.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        host, port = runner.addresses[0][:2]
        agent.url = f"{'https' if tls else 'http'}://{host}:{port}"
        yield agent
    finally:
        agent.complete.set()
        await runner.cleanup()
