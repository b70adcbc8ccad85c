"""A receiver of webhooks that fails as told, or at random; it keeps what it has accepted."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from aiohttp import web

DROP: Final = 0
"""Instead of a status: the connection is closed without an answer."""
SECRET: Final = "s3cr3t-path"
"""A part of the URL that nothing may show."""


class Receiver:
    """Answers with the next of these statuses, then with 200, or with what `answer` returns for a document."""

    def __init__(self, *statuses: int, answer: Callable[[dict[str, Any]], int] | None = None) -> None:
        self.statuses = list(statuses)
        self.answer = answer
        self.attempts: list[str] = []
        """The idempotency keys of all requests."""
        self.accepted: list[dict[str, Any]] = []
        """The documents that were answered with 200, also those whose answer was lost."""
        self.headers: list[dict[str, str]] = []

    @property
    def ids(self) -> list[str]:
        """The IDs of what was accepted, each as often as that was."""
        return [each["id"] for each in self.accepted]

    async def post(self, request: web.Request) -> web.Response:
        document = await request.json()
        self.attempts.append(request.headers["Idempotency-Key"])
        self.headers.append(dict(request.headers))
        status = self.statuses.pop(0) if self.statuses else self.answer(document) if self.answer else 200
        if status in (DROP, 200):
            self.accepted.append(document)  # the answer may be lost after it was accepted
        if status == DROP:
            assert request.transport
            request.transport.abort()
            return web.Response()
        return web.Response(status=status, headers={"Location": "/elsewhere"} if 300 <= status < 400 else {})


def often_failing(chance: Random) -> Callable[[dict[str, Any]], int]:
    """One request in five fails before it is accepted, another one after that."""
    return lambda _: chance.choices((200, 500, DROP), (3, 1, 1))[0]


class Endpoint:
    """The address of a receiver, which can be stopped and started again. `path` is the file with its URL."""

    def __init__(self, receiver: Receiver, path: Path) -> None:
        self.path = path
        self._receiver = receiver
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post(f"/{SECRET}", self._receiver.post)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]
        self.path.write_text(f"http://127.0.0.1:{self._port}/{SECRET}\n")

    async def stop(self) -> None:
        """End all connections, also in the middle of a request."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None


@asynccontextmanager
async def listening(receiver: Receiver, scratch: Path) -> AsyncIterator[Endpoint]:
    endpoint = Endpoint(receiver, scratch / "webhook-url")
    await endpoint.start()
    try:
        yield endpoint
    finally:
        await endpoint.stop()
