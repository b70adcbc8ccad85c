"""A campaign of accidents: faults of connections, servers and nodes, while the aggregator is killed again and again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from gputally.demo.demo import MONDAY_SIX_US
from gputally_sim.cluster import SimCluster
from gputally_sim.instants import MINUTE_US
from gputally_sim.scenarios.chaos import Chaos
from tests.behaviour.test_sim_usage import pace, stopped
from tests.fakes.command import scrape
from tests.fakes.stepped import SteppedCluster, stepped
from tests.fakes.until import until
from tests.surfaces.book import Book
from tests.surfaces.kills import killed_at_end
from tests.surfaces.scenario_books import begun, closed_at, settings_of

SCENARIO: Final = "s1"
SPEED: Final = 1200
"""Simulated seconds per real second."""
KILLS: Final = 3
LIFE_US: Final = 25 * MINUTE_US
DOWN_US: Final = 3 * MINUTE_US
FAULT_US: Final = 4 * MINUTE_US
BEGIN_US: Final = MONDAY_SIX_US + 40 * MINUTE_US


@asynccontextmanager
async def campaign(scratch: Path, *, seed: int) -> AsyncIterator[Book]:
    """The demo's cluster from 06:40 on, with its preemptions at 07:30; the last life recovers from all faults."""
    async with begun(SCENARIO, seed=seed, at_us=BEGIN_US) as (cluster, agents):
        settings, chaos = settings_of(SCENARIO, scratch, cluster, agents), None
        for _ in range(KILLS):
            async with killed_at_end(cluster, settings) as running:
                pace(cluster, SPEED)  # only now: agents measure before the accounting starts, too
                chaos = chaos or cluster.simulation.cause_chaos(every_us=FAULT_US)
                await _scraped(running, cluster, until_us=cluster.now_us() + LIFE_US)
            await cluster.clock.sleep_until(cluster.now_us() + DOWN_US)
        async with stepped(cluster, settings) as running:
            await _recovered(running, cluster, chaos)
            yield await closed_at(running, settings, scratch)


async def _scraped(running: SteppedCluster, cluster: SimCluster, *, until_us: int) -> None:
    """Scrape between the seconds of API times, so that counters run ahead of them."""
    while cluster.now_us() < until_us:
        await scrape(running.url)
        await asyncio.sleep(0.02)


async def _recovered(running: SteppedCluster, cluster: SimCluster, chaos: Chaos | None) -> None:
    """End all faults, stop the time, and account what has happened."""
    if chaos:
        chaos.end()
    await _scraped(running, cluster, until_us=cluster.now_us() + LIFE_US)
    await stopped(cluster)
    await until(running.has_accounted)
    await running.advance(cluster.now_us())

