"""Books of the demo's scenarios, stepped to a cut-off."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from gputally.aggregator.agent_client import agent_client
from gputally.aggregator.agent_pulls import puller
from gputally.aggregator.aggregator import RunningAggregator
from gputally.aggregator.budget_watch import budget_task
from gputally.aggregator.settings import AgentOptions, Settings
from gputally.demo.demo import MONDAY_SIX_US
from gputally.demo.sim_agents import SimAgents
from gputally.demo.waiting_example import create_waiting_example
from gputally.ledger.open import open_reader
from gputally.model.kube.kinds import Kind
from gputally_sim.cluster import SimCluster
from gputally_sim.instants import HOUR_US, MINUTE_US
from tests.fakes.stepped import BOOKMARK_S, STANDSTILL, SteppedCluster, demo_settings, stepped
from tests.fakes.until import until
from tests.surfaces.book import Book, fetched

WATCHED: Final = (Kind.DISRUPTION_BUDGETS, Kind.QUOTAS, Kind.FAILED_CREATES)
BEFORE_US: Final = 1_234_500_000
"""Pods and nodes are older than the accounting, which does not start in a whole second."""
NEVER_S: Final = 10**9
LATELY_US: Final = 200_000
"""The time before the cut-off from which counters grow steadily; nothing happens in it."""
LATELY: Final = "/metrics, lately"
"""The metrics at its beginning."""


async def nothing(_: SteppedCluster) -> None:
    """Between two steps."""


class Steps(NamedTuple):
    """The simulated time between two stops of a scenario, and what is done at each of them.

    A new series is exported as 0 for `zero_s`.
    """

    us: int
    then: Callable[[SteppedCluster], Awaitable[None]]
    zero_s: int


FEW_STEPS: Final = Steps(15 * MINUTE_US, nothing, zero_s=0)


@asynccontextmanager
async def scenario(
    scratch: Path, *, name: str, hours: float, seed: int, steps: Steps = FEW_STEPS
) -> AsyncIterator[Book]:
    """The demo's cluster with its agents, from Monday 06:00 on. The cut-off is no whole second."""
    end_us = MONDAY_SIX_US + int(hours * HOUR_US) + 700_000
    async with begun(name, seed=seed, at_us=MONDAY_SIX_US + BEFORE_US) as (cluster, agents):
        settings = replace(settings_of(name, scratch, cluster, agents), zero_s=steps.zero_s)
        async with stepped(cluster, settings) as running:
            while running.now_us() < end_us:
                await steps.then(running)
                await running.advance(min(end_us, running.now_us() + steps.us))
                await pull_agents(running, settings)
            await steps.then(running)
            yield await closed_at(running, settings, scratch)


@asynccontextmanager
async def begun(name: str, *, seed: int, at_us: int) -> AsyncIterator[tuple[SimCluster, SimAgents]]:
    """The cluster of the demo's scenario at this time, which stands still."""
    cluster = SimCluster(seed=seed, speed=STANDSTILL, start_us=MONDAY_SIX_US, bookmark_s=BOOKMARK_S)
    agents = SimAgents(cluster)
    cluster.run_scenario(name)
    create_waiting_example(cluster.registry, name)
    skip(cluster, at_us)
    async with cluster, agents:
        yield cluster, agents


def skip(cluster: SimCluster, us: int) -> None:
    """Jump to this time while no aggregator watches."""
    cluster.clock.skip_to(us)
    cluster.simulation.run_until(us)


async def pull_agents(running: SteppedCluster, settings: Settings) -> None:
    """Account what all agents have measured so far."""
    pipeline = running.running.pipeline
    async with agent_client(settings.agents) as client:
        pull = puller(client, pipeline, settings.agents, clock=running.now_us)
        for target in settings.agents.targets(pipeline.fleet.agents.on_nodes()):
            await pull.pull(target)


def settings_of(name: str, scratch: Path, cluster: SimCluster, agents: SimAgents) -> Settings:
    """Those of the demo. Agents are pulled, and budgets evaluated, only when a scene says so."""
    return replace(
        demo_settings(name, scratch, scratch / "ledger.db", url=cluster.url, watched=WATCHED),
        zero_s=0,
        agents=AgentOptions(port=agents.port, interval_s=NEVER_S),
        budgets_interval_s=NEVER_S,
        training_job_cost=True,
    )


async def closed_at(stepping: SteppedCluster, settings: Settings, scratch: Path) -> Book:
    """The book some moments later: all that was reported is accounted, written, and in the budgets.

    The metrics are read first, since each scrape moves the end of the ledger by a microsecond.
    """
    running = stepping.running
    await accounted(stepping)
    lately = await fetched(stepping.url, "/metrics")
    await stepping.advance(stepping.now_us() + LATELY_US)
    await accounted(stepping)
    await _evaluate_budgets(settings, running)
    scraped: dict[tuple[str, ...], str] = {
        (path,): await fetched(stepping.url, path) for path in ("/metrics", "/metrics/pods")
    }
    scraped[LATELY,] = lately
    await stepping.written()
    with open_reader(settings.ledger) as reader:
        state = reader.state()
    return Book(
        ledger=Path(settings.ledger),
        config=Path(str(settings.config)),
        kubeconfig=Path(str(settings.kubeconfig)),
        url=stepping.url,
        start_us=state.accounting_start_us,
        now_us=state.accounted_us,
        scratch=scratch,
        texts=scraped,
    )


async def accounted(stepping: SteppedCluster) -> None:
    """All that was reported is in the metrics, and all classes of waiting pods were looked at since."""
    pipeline = stepping.running.pipeline
    await until(lambda: pipeline.exposition.has_caught_up)
    pipeline.accountant.advance(now_us=stepping.now_us())
    waiting = pipeline.fleet.waiting
    for _ in tuple(waiting.verdicts.classes):
        waiting.findings.step()


async def _evaluate_budgets(settings: Settings, running: RunningAggregator) -> None:
    if running.pipeline.fleet.rules.budgets:
        task = asyncio.create_task(budget_task(settings, running.pipeline, running.reports)())
        await until(lambda: running.pipeline.health.budgets and running.pipeline.health.budgets.values)
        task.cancel()
