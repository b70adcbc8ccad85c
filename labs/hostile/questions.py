"""One client that asks the aggregator on many connections, and an honest one beside it that asks now and then."""

import asyncio
import time
from itertools import cycle

import aiohttp

from tests.behaviour.product import Product

PATHS = ("/api/v1/pending?helps=true", "/api/v1/report?window=today&by=job", "/api/v1/allocations", "/api/v1/fits")
HONEST_ADDRESS, HOSTILE_ADDRESS = "127.0.0.3", "127.0.0.2"
"""Without users, a client is an address."""
CONNECTIONS = 20
QUESTIONS = 15
"""Of each connection: enough to take all places, and few enough to leave the processor to the accounting."""
EVERY_S = 1.0


class Questions:
    """The honest questions about one product: how long each took, and those that were not answered."""

    def __init__(self, product: Product) -> None:
        self.seconds: list[float] = []
        self.unanswered: list[str] = []
        self._product = product

    async def run(self) -> None:
        """Run until cancelled; a process that restarts is asked again."""
        for path in cycle(PATHS):
            started_s = time.monotonic()
            status = await ask(self._product, path, source=HONEST_ADDRESS)
            if status is not None:
                self.seconds.append(time.monotonic() - started_s)
                if status in (429, 503):
                    self.unanswered.append(f"{path}: {status}")
            await asyncio.sleep(EVERY_S)

    @property
    def slowest_s(self) -> float:
        """The longest answer."""
        return max(self.seconds, default=0.0)


async def ask(product: Product, path: str, *, source: str) -> int | None:
    """The status of an answer on a new connection; None without one, as while the process restarts."""
    connector = aiohttp.TCPConnector(local_addr=(source, 0))
    try:
        async with aiohttp.ClientSession(connector=connector) as session, session.get(product.url + path) as answer:
            await answer.read()
            return answer.status
    except aiohttp.ClientError:
        return None


async def flood(product: Product) -> int:
    """Ask on all connections at once; returns how many questions were rejected."""

    async def asking(first: int) -> int:
        paths = [PATHS[(first + number) % len(PATHS)] for number in range(QUESTIONS)]
        return sum([await ask(product, path, source=HOSTILE_ADDRESS) in (429, 503) for path in paths])

    return sum(await asyncio.gather(*map(asking, range(CONNECTIONS))))
