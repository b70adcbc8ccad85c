"""What Prometheus and Alertmanager have in common: how they start, die, reload and are asked again and again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self, TypeVar

import aiohttp

from hack.build import Binary
from tests.cluster.component import Component
from tests.cluster.control_plane import LOOPBACK, free_ports
from tests.prometheus.tools import built

T = TypeVar("T")


class ReloadRefused(Exception):
    """The server goes on with what it had; the message ends with its last words."""


class Daemon:
    """A server at `url`, a free port of loopback that it keeps through restarts."""

    def __init__(self, binary: Binary, arguments: Sequence[str], *, log: Path) -> None:
        [port] = free_ports(1)
        self.url = f"http://{LOOPBACK}:{port}"
        command = [built(binary), f"--web.listen-address={LOOPBACK}:{port}", *arguments]
        self.component = Component(command, log=log, health=f"{self.url}/-/ready")

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            self.kill()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.kill()

    async def start(self) -> None:
        """Return when it is ready. Raises: ComponentFailed."""
        self.component.launch()
        await self.component.ready()

    def kill(self) -> None:
        """SIGKILL; its data stays."""
        self.component.kill()

    async def restart(self) -> None:
        """SIGKILL, then the same port and data."""
        self.kill()
        await self.start()

    async def reread(self) -> None:
        """Have it read its files anew. Raises: ReloadRefused."""
        async with aiohttp.ClientSession() as session, session.post(f"{self.url}/-/reload") as response:
            if response.status != 200:
                raise ReloadRefused(f"{await response.text()}{self.component.log_tail()}")


async def eventually(ask: Callable[[], Awaitable[T]], holds: Callable[[T], object], *, within: float, what: str) -> T:
    """The first answer that `holds`; the servers tell nobody when one changes. Raises: TimeoutError with the last."""
    last: T | None = None

    async def found() -> T:
        nonlocal last
        while not holds(answer := await ask()):
            last = answer
            await asyncio.sleep(0.05)
        return answer

    try:
        return await asyncio.wait_for(found(), within)
    except TimeoutError:
        raise TimeoutError(f"{what} is not as awaited after {within} s, but: {last}") from None
