"""A book of an aggregator that is killed again and again, and scraped at every change.

Most changes are within a second of API time, so counters run ahead of what the API says later.
"""

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final

from gputally.aggregator.settings import Settings
from gputally.demo.demo import MONDAY_SIX_US
from gputally_sim.cluster import SimCluster
from gputally_sim.instants import HOUR_US, MINUTE_US
from tests.fakes.command import scrape
from tests.fakes.stepped import SteppedCluster, stepped
from tests.surfaces.book import Book
from tests.surfaces.scenario_books import begun, closed_at, pull_agents, settings_of

SCENARIO: Final = "s1"
BEGIN_US: Final = MONDAY_SIX_US + 45 * MINUTE_US + 400_000
LIVES_US: Final = (45 * MINUTE_US + 3_600_000, MINUTE_US, 12_700_000, 900_000, HOUR_US)
"""How long each process lives: around 07:30, when inference preempts, some live only for seconds."""


@asynccontextmanager
async def kills(scratch: Path, *, seed: int) -> AsyncIterator[Book]:
    """The demo's cluster from 06:45 on; the last process is not killed."""
    async with begun(SCENARIO, seed=seed, at_us=BEGIN_US) as (cluster, agents):
        settings = settings_of(SCENARIO, scratch, cluster, agents)
        for life_us in LIVES_US:
            async with killed_at_end(cluster, settings) as running:
                await _scraped(running, cluster, settings, until_us=cluster.now_us() + life_us)
        async with stepped(cluster, settings) as running:
            await _scraped(running, cluster, settings, until_us=cluster.now_us() + 5 * MINUTE_US)
            yield await closed_at(running, settings, scratch)


async def _scraped(running: SteppedCluster, cluster: SimCluster, settings: Settings, *, until_us: int) -> None:
    """Scrape after every change."""
    while running.now_us() < until_us:
        next_us = cluster.simulation.agenda.next_us
        await running.advance(until_us if next_us is None else min(until_us, next_us + 1))
        await scrape(running.url)
    await pull_agents(running, settings)


@asynccontextmanager
async def killed_at_end(cluster: SimCluster, settings: Settings) -> AsyncIterator[SteppedCluster]:
    """An aggregator whose ledger is what a process leaves that is killed: what it has committed."""
    ledger = Path(settings.ledger)
    committed = ledger.with_name("committed.db")
    async with stepped(cluster, settings) as running:
        yield running
        with closing(sqlite3.connect(ledger)) as source, closing(sqlite3.connect(committed)) as target:
            source.backup(target)
    for suffix in ("-wal", "-shm"):
        ledger.with_name(ledger.name + suffix).unlink(missing_ok=True)
    shutil.move(committed, ledger)
