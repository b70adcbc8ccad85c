"""Receives what Alertmanager sends to webhooks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

from aiohttp import web

from tests.cluster.control_plane import LOOPBACK
from tests.cluster.manifests import Json


@asynccontextmanager
async def listening(application: web.Application) -> AsyncIterator[str]:
    """The URL at which the application answers."""
    runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class Notification:
    """One call: `receiver` is its path without the slash, `body` what Alertmanager's configuration makes it send."""

    receiver: str
    body: Json

    @property
    def status(self) -> str:
        """`firing` while one of the alerts does, else `resolved`; of a webhook's body, as all below."""
        status: str = self.body["status"]
        return status

    @property
    def alerts(self) -> list[Json]:
        """Each with its own status, labels and annotations."""
        alerts: list[Json] = self.body["alerts"]
        return alerts

    @property
    def names(self) -> set[str]:
        """Of its alerts."""
        return {alert["labels"]["alertname"] for alert in self.alerts}


class Receiver:
    """A server at `url` that accepts JSON at any path, and keeps it in the order it came."""

    def __init__(self) -> None:
        self.notifications: list[Notification] = []
        self.url = ""
        self._arrival = asyncio.Condition()

    async def accept(self, request: web.Request) -> web.Response:
        """One call."""
        notification = Notification(request.path.removeprefix("/"), await request.json())
        async with self._arrival:
            self.notifications.append(notification)
            self._arrival.notify_all()
        return web.Response()

    def to(self, receiver: str) -> list[Notification]:
        """What came at that path."""
        return [each for each in self.notifications if each.receiver == receiver]

    async def until(self, holds: Callable[[Self], object], *, within: float = 30) -> None:
        """Return once it `holds` of this receiver. Raises: TimeoutError with what has come."""
        try:
            async with asyncio.timeout(within), self._arrival:
                await self._arrival.wait_for(lambda: holds(self))
        except TimeoutError:
            raise TimeoutError(f"not the awaited after {within} s, but: {self.notifications}") from None


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", receiver.accept)
    async with listening(application) as receiver.url:
        yield receiver
