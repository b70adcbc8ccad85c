"""A running aggregator in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from gputally.aggregator.aggregator import RunningAggregator, aggregate
from gputally.aggregator.settings import Settings
from gputally_sim.cluster import SimCluster
from tests.fakes.until import until


@asynccontextmanager
async def aggregating(
    settings: Settings, cluster: SimCluster, *, real_time: bool = False
) -> AsyncIterator[tuple[RunningAggregator, str]]:
    """A running aggregator and its URL, stopped on exit. It uses simulated time, or real time."""
    started = asyncio.get_running_loop().create_future()
    clock = None if real_time else cluster.clock.now_us
    task = asyncio.create_task(aggregate(settings, clock, started=started.set_result))
    await asyncio.wait([task, started], return_when=asyncio.FIRST_COMPLETED, timeout=20)
    if task.done():
        await task
    running: RunningAggregator = await started
    try:
        yield running, f"http://{running.addresses[0]}"
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until_ready(running: RunningAggregator) -> None:
    await until(lambda: not running.ready().missing)
