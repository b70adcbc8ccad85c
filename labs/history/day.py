"""Scrapes a scenario's day: the demo's cluster, aggregator and agents, every simulated minute."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp

from gputally.aggregator.aggregator import RunningAggregator, aggregate
from gputally.aggregator.pages import PODS_PATH
from gputally.aggregator.settings import AgentOptions, Settings
from gputally.demo.demo import MONDAY_SIX_US
from gputally.demo.sim_agents import SimAgents
from gputally.exposition.text_format import END
from gputally.model.units import US_PER_SECOND
from gputally_sim.cluster import SimCluster
from tests.fakes.kubeconfigs import kubeconfig

EVERY_S: Final = 60
"""Simulated seconds between scrapes."""
SPEED: Final = 120
"""Simulated seconds per real second; the aggregator pulls agents every 2 simulated minutes."""


class Target(NamedTuple):
    """A scrape target and its labels."""

    job: str
    instance: str
    url: str
    path: str = "/metrics"


async def scraped(scenario: str, *, hours: float, into: Path) -> dict[Target, Path]:
    """Scrape each target into an OpenMetrics file with simulated timestamps."""
    written: dict[Target, Path] = {}
    async with _stage(scenario, into) as (cluster, agents, running), aiohttp.ClientSession() as session:
        for number in range(int(hours * 3600 / EVERY_S)):
            due_us = MONDAY_SIX_US + number * EVERY_S * US_PER_SECOND
            await cluster.clock.sleep_until(due_us)
            for target in _targets(cluster, agents, running):
                path = written.setdefault(target, into / f"{target.job}-{target.instance}.om")
                await append(session, target, path, at_us=cluster.now_us())
    for path in written.values():
        with path.open("ab") as out:
            out.write(END)
    return written


async def append(session: aiohttp.ClientSession, target: Target, path: Path, *, at_us: int) -> None:
    """Scrape the target, and add its samples to the file with this time."""
    async with session.get(f"{target.url}{target.path}") as response:
        response.raise_for_status()
        text = await response.read()
    moment = b" %.3f\n" % (at_us / US_PER_SECOND)
    samples = [line for line in text.splitlines() if line and not line.startswith(b"#")]
    with path.open("ab") as out:
        out.write(moment.join((*samples, b"up 1", b"")))


def _targets(cluster: SimCluster, agents: SimAgents, running: RunningAggregator) -> list[Target]:
    url = f"http://{running.addresses[0]}"
    found = [Target("gputally", "gputally", url), Target("gputally-pods", "gputally", url, PODS_PATH)]
    for pod in cluster.store.docs("pods"):
        node, address = pod["spec"].get("nodeName"), pod["status"].get("podIP")
        if node in agents.agents and pod["metadata"]["name"].startswith("gputally-agent") and address:
            found.append(Target("gputally-agent", node, f"http://{address}:{agents.port}"))
    return found


@asynccontextmanager
async def _stage(scenario: str, scratch: Path) -> AsyncIterator[tuple[SimCluster, SimAgents, RunningAggregator]]:
    """Run the demo without its table; the aggregator is cancelled on exit."""
    cluster = SimCluster(seed=2 + (scenario == "s2"), speed=SPEED, start_us=MONDAY_SIX_US)
    agents, started = SimAgents(cluster), asyncio.get_running_loop().create_future()
    cluster.simulation.run_scenario(scenario)
    async with cluster, agents:
        settings = _settings(scenario, scratch, url=cluster.url, port=agents.port)
        aggregator = asyncio.create_task(aggregate(settings, cluster.now_us, started=started.set_result))
        try:
            await asyncio.wait((aggregator, started), return_when=asyncio.FIRST_COMPLETED)
            if aggregator.done():
                aggregator.result()
            yield cluster, agents, started.result()
        finally:
            aggregator.cancel()
            await asyncio.wait([aggregator])


def _settings(scenario: str, scratch: Path, *, url: str, port: int) -> Settings:
    examples = Path(str(files("gputally.demo") / "examples"))
    return Settings(
        config=examples / f"demo-{scenario}.yaml",
        prices=examples / "demo-prices.yaml",
        ledger=str(scratch / "gputally.db"),
        kubeconfig=kubeconfig(scratch / "kube", url, {}),
        addresses=("127.0.0.1:0",),
        agents=AgentOptions(port=port, interval_s=1),
    )
