"""A real HTTP server whose responses the test gives, request by request."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

PATIENCE_SECONDS = 10
"""A timeout that only a hanging test reaches."""


class Request:
    """An open request, to be answered with one response or a stream."""

    def __init__(self, raw: web.Request) -> None:
        self.path = raw.path
        self.target = raw.raw_path
        """Path and query as received, without decoding."""
        self.query: Mapping[str, str] = dict(raw.query)
        self.headers: Mapping[str, str] = raw.headers
        self.port: int = raw.transport.get_extra_info("peername")[1] if raw.transport else 0
        self.answered: asyncio.Future[web.StreamResponse] = asyncio.get_running_loop().create_future()
        self._raw = raw
        self._stream: web.StreamResponse | None = None

    def answer(self, body: object = None, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Answer with `body`: bytes as they are, other values as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answered.set_result(web.Response(body=data, status=status, headers=headers))

    def refuse(self, status: int, message: str = "no", headers: Mapping[str, str] | None = None, **more: Any) -> None:  # noqa: ANN401 - any JSON
        """Answer with an error Status, as the API server does."""
        self.answer(
            {"kind": "Status", "code": status, "message": message, "metadata": {}, **more},
            status,
            headers,
        )

    async def send(self, *lines: bytes) -> None:
        """Stream `lines` in one write, without adding line ends; without lines, only open the stream."""
        if self._stream is None:
            self._stream = web.StreamResponse()
            await self._stream.prepare(self._raw)
        if lines:
            await self._stream.write(b"".join(lines))

    async def close(self) -> None:
        """End the stream, as the server does after timeoutSeconds."""
        await self.send()
        assert self._stream is not None
        await self._stream.write_eof()
        self.answered.set_result(self._stream)

    async def abort(self) -> None:
        """Break the connection."""
        await self.send()
        assert self._raw.transport is not None
        self._raw.transport.abort()


class ScriptedApi:
    """Passes its requests to the test in the order of arrival."""

    def __init__(self) -> None:
        self.url = ""
        self.newest = "1000000"
        """The latest resource version of the server."""
        self._incoming: asyncio.Queue[Request] = asyncio.Queue()
        self._open: list[Request] = []

    async def request(self) -> Request:
        """The next request."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._incoming.get()

    @property
    def is_left_alone(self) -> bool:
        """Whether no request is pending."""
        return self._incoming.empty()

    async def handle(self, raw: web.Request) -> web.StreamResponse:
        """Wait for the test's answer; requests for only the latest version are answered at once."""
        request = Request(raw)
        if raw.query.get("limit") == "1":
            return web.json_response({"metadata": {"resourceVersion": self.newest}})
        self._open.append(request)
        self._incoming.put_nowait(request)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await request.answered

    def leave(self) -> None:
        """Cancel every open request."""
        for request in self._open:
            request.answered.cancel()


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedApi]:
    """A scripted server on a free port of the loopback interface."""
    scripted = ScriptedApi()
    application = web.Application()
    application.router.add_get("/{path:.*}", scripted.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    scripted.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield scripted
    finally:
        scripted.leave()
        await runner.cleanup()
