"""The demo as a separate process, with the aggregator that it runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientError, ClientSession

from tests.cluster.control_plane import LOOPBACK, free_ports
from tests.fakes.command import PATIENCE_SECONDS, start


@asynccontextmanager
async def demonstrating(*flags: str) -> AsyncIterator[str]:
    """The URL of a ready aggregator on a simulated cluster, with these flags of the demo."""
    [port] = free_ports(1)
    process = await start("demo", "--web.listen-address", f"{LOOPBACK}:{port}", "--for", "5m", *flags)
    url = f"http://{LOOPBACK}:{port}"
    try:
        async with ClientSession() as session, asyncio.timeout(PATIENCE_SECONDS * 3):
            while not await _is_ready(session, url):  # noqa: ASYNC110 - another process sends no signal
                await asyncio.sleep(0.1)
        yield url
    finally:
        process.terminate()
        await process.communicate()


async def _is_ready(session: ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/readyz") as response:
            return response.status == 200
    except ClientError:
        return False
