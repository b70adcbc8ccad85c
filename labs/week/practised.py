"""The demo's scenario s1 with the practices of this lab, and its aggregator."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from gputally.demo.demo import MONDAY_SIX_US
from gputally.demo.waiting_example import create_waiting_example
from gputally_sim.cluster import SimCluster
from labs.week import practices
from tests.fakes.stepped import BOOKMARK_S, SteppedCluster, demo_settings, stepped

SCENARIO: Final = "s1"
SEED: Final = 2


@asynccontextmanager
async def practised(scratch: Path, ledger: Path) -> AsyncIterator[SteppedCluster]:
    """The cluster on a Monday; the aggregator has read it."""
    cluster = SimCluster(seed=SEED, start_us=MONDAY_SIX_US, bookmark_s=BOOKMARK_S)
    cluster.run_scenario(SCENARIO)
    create_waiting_example(cluster.registry, SCENARIO)
    practices.begin(cluster.registry)
    async with cluster, stepped(cluster, demo_settings(SCENARIO, scratch, ledger, url=cluster.url)) as running:
        yield running
