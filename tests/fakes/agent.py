"""An agent as the network sees it: it answers /v1/usage as the test says."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from gputally.model.measured.usage_report import UsageReport

Body = UsageReport | bytes


class FakeAgent:
    """Answers with `body`, which may be made anew for each request; with a `token` it answers nobody without it."""

    def __init__(self, body: Body | Callable[[], Body], *, token: str = "") -> None:
        self.body = body
        self.token = token
        self.status = 200
        self.requests = 0
        self.assignment = asyncio.Event()
        """Once cleared, answers break off after their beginning until it is set."""
        self.assignment.set()
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        self.requests += 1
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        body = self.body() if callable(self.body) else self.body
        encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
        response = web.StreamResponse(status=self.status, headers={"Location": "/elsewhere"})
        await response.prepare(request)
        await response.write(encoded[:1])
        await self.assignment.wait()
        await response.write(encoded[1:])
        return response


@asynccontextmanager
async def serving(agent: FakeAgent, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeAgent]:
    """The agent listens at its `url`."""
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
        agent.assignment.set()
        await runner.cleanup()
