"""A book of a campaign: faults of nodes and pods, and an aggregator that is killed again and again.

It is scraped at every change. Most changes are within a second of API time, so counters run ahead of what the API says
later. The same seed makes the same history.
"""

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final, NamedTuple

from gputally.aggregator.settings import Settings
from gputally.demo.demo import MONDAY_SIX_US
from gputally_sim.cluster import SimCluster
from gputally_sim.instants import HOUR_US, MINUTE_US, SECOND_US
from gputally_sim.scenarios.chaos import VANISHING
from tests.fakes.command import scrape
from tests.fakes.stepped import SteppedCluster, stepped
from tests.surfaces.book import Book
from tests.surfaces.scenario_books import begun, closed_at, pull_agents, settings_of, skip

SCENARIO: Final = "s1"
BEGIN_US: Final = MONDAY_SIX_US + 45 * MINUTE_US + 400_000
FAULT_US: Final = 6 * MINUTE_US
FAULTS: Final = (
    *("unready", "unreachable", "cordon", "skew", "reborn", "vanish", "reregister", "fail gpus", "reboot"),
)
"""Those that break no connection: these take real time to recover."""


class Life(NamedTuple):
    """A process that is killed, and the time until the next one.

    Before its end, the watches may stall for a time of which the server keeps no history.
    """

    us: int
    stalled_us: int = 0
    down_us: int = 0


LIVES: Final = (
    Life(45 * MINUTE_US - 1_300_000),
    Life(MINUTE_US),  # at 07:30, inference preempts
    Life(12_700_000, down_us=3 * SECOND_US),
    Life(20 * MINUTE_US, stalled_us=4 * MINUTE_US),
    Life(900_000),
    Life(HOUR_US, down_us=MINUTE_US),
)


@asynccontextmanager
async def campaign(scratch: Path, *, seed: int) -> AsyncIterator[Book]:
    """The demo's cluster from 06:45 on; the last process is not killed."""
    async with begun(SCENARIO, seed=seed, at_us=BEGIN_US) as (cluster, agents):
        settings, chaos = settings_of(SCENARIO, scratch, cluster, agents), None
        for life in LIVES:
            async with _killed_at_end(cluster, settings) as running:
                chaos = chaos or cluster.simulation.cause_chaos(every_us=FAULT_US, only=FAULTS)
                await _scraped(running, cluster, settings, until_us=cluster.now_us() + life.us)
                if life.stalled_us:
                    await _stalled(running, cluster, life.stalled_us)
            skip(cluster, cluster.now_us() + life.down_us)
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


async def _stalled(running: SteppedCluster, cluster: SimCluster, lasts_us: int) -> None:
    """A node and its pod vanish while the watches stall: scrapes still count them, and nobody ever sees their end."""
    cluster.faults.stall()
    cluster.nodes.delete(VANISHING)
    skip(cluster, cluster.now_us() + lasts_us)
    await scrape(running.url)
    cluster.store.compact()
    cluster.faults.drop_watches()
    cluster.faults.resume()
    await running.advance(cluster.now_us() + SECOND_US)
    await scrape(running.url)


@asynccontextmanager
async def _killed_at_end(cluster: SimCluster, settings: Settings) -> AsyncIterator[SteppedCluster]:
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
