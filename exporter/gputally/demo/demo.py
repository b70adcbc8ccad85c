"""The demo: the real aggregator on a simulated cluster, with a live table of what it finds."""

import asyncio
import json
import math
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, Self

from gputally.aggregator.aggregator import RunningAggregator, aggregate
from gputally.aggregator.settings import AgentOptions, Settings
from gputally.demo.display import Screen
from gputally.demo.plan import Demo
from gputally.demo.sim_agents import SimAgents
from gputally.demo.waiting_example import create_waiting_example
from gputally.errors import ConfigError, Problem
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.kube.kinds import Kind
from gputally.model.units import US_PER_SECOND, seconds_of
from gputally.process.log import configure
from gputally_sim.cluster import SimCluster
from gputally_sim.scenarios.scenario import SCENARIOS
from gputally_sim.trace.replay import Replay
from gputally_sim.trace.trace import read_nodes, read_trace

MONDAY_SIX_US: Final = 1_780_898_400 * US_PER_SECOND
"""2026-06-08 06:00 UTC: two hours before the inference load of S1 starts."""
_CHAOS_SECONDS: Final = 5.0
"""Real seconds between two faults of --chaos."""
_POLL_SECONDS: Final = 0.1
_WATCHED: Final = ("poddisruptionbudgets", "resourcequotas", "events/FailedCreate")
"""Optional resources that the simulated cluster has."""
_BUDGETS_SECONDS: Final = 20.0
"""Real seconds, some hours of the simulation."""


def time_limit(text: str) -> int | None:
    """The seconds of a duration; None for the empty text. Raises: ConfigError."""
    if text and not seconds_of(text):
        raise ConfigError([Problem("", "--for", f"'{text}' is not a duration; use one such as 30s or 5m")])
    return seconds_of(text)


async def run(demo: Demo) -> None:
    """Run until the time or the trace is over, or the task is cancelled; print a final table."""
    _check(demo)
    configure(level="error" if demo.chaos else "warning", form="text")
    environment = _environment(demo)
    cluster, screen = environment.cluster, Screen(demo, environment.cluster, environment.replay)
    with _files(demo) as settings_of:
        try:
            async with environment, asyncio.timeout(demo.duration_s) as limit, asyncio.TaskGroup() as tasks:
                tasks.create_task(screen.draw_forever(), name="screen")
                tasks.create_task(_drive(demo, cluster, environment.replay, screen, limit), name="driver")
                settings = settings_of(cluster.url, agents_port=environment.agents.port if environment.agents else None)
                await aggregate(settings, cluster.now_us, started=screen.begin)
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            screen.end()


def _check(demo: Demo) -> None:
    """Raises: ConfigError for invalid options."""
    if not 0 < demo.speed < math.inf:
        raise ConfigError([Problem("", "--speed", f"{demo.speed:g} is not a valid speed; use a number above 0")])
    if demo.trace_nodes and not demo.trace:
        raise ConfigError([Problem("", "--trace-nodes", "requires --trace; specify the trace too")])
    if demo.trace and demo.ledger and demo.ledger.exists():
        text = f"{demo.ledger} exists, but a trace is replayed from its beginning; use a new file"
        raise ConfigError([Problem("", "--ledger", text)])


class _Environment:
    """A cluster, with agents or with a trace to replay once the aggregator watches.

    A trace contains allocations and no usage, so its nodes have no agents.
    """

    def __init__(self, cluster: SimCluster, *, agents: SimAgents | None = None, replay: Replay | None = None) -> None:
        self.cluster = cluster
        self.agents = agents
        self.replay = replay
        self._exits = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as exits:
            await exits.enter_async_context(self.cluster)
            if self.agents:
                await exits.enter_async_context(self.agents)
            self._exits = exits.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._exits.aclose()


def _environment(demo: Demo) -> _Environment:
    if not demo.trace:
        return _scenario_environment(demo)
    trace, nodes = read_trace(demo.trace), read_nodes(demo.trace_nodes) if demo.trace_nodes else ()
    cluster = SimCluster(seed=demo.seed, speed=demo.speed, start_us=MONDAY_SIX_US)
    return _Environment(cluster, replay=Replay(cluster.registry, trace, nodes))


async def _drive(
    demo: Demo, cluster: SimCluster, replay: Replay | None, screen: Screen, limit: asyncio.Timeout
) -> None:
    """Start chaos and replay once the aggregator is ready; end the demo once the whole trace is accounted."""
    running = await screen.running()
    await _until(lambda: not running.ready().missing)
    every_us = int(_CHAOS_SECONDS * demo.speed * US_PER_SECOND)
    chaos = cluster.simulation.cause_chaos(every_us=every_us) if demo.chaos else None
    if replay:
        replay.begin()
        await _until(lambda: replay.progress == 1)
        if chaos:
            chaos.end()
        last = cluster.store.version_of("pods")
        await _until(lambda: _accounted(running) >= last)
        limit.reschedule(asyncio.get_running_loop().time())


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - no event signals the condition
        await asyncio.sleep(_POLL_SECONDS)


def _accounted(running: RunningAggregator) -> int:
    """The resourceVersion up to which pods are accounted."""
    checkpoint = running.pipeline.fleet.resume_of(Kind.PODS)
    return int(checkpoint.version) if checkpoint else 0


def _scenario_environment(demo: Demo) -> _Environment:
    """The cluster of this seed and scenario. With an existing ledger, it continues where the last run ended."""
    seed = len(SCENARIOS) * demo.seed + [*SCENARIOS].index(demo.scenario)
    cluster = SimCluster(seed=seed, speed=demo.speed, start_us=MONDAY_SIX_US)
    agents = SimAgents(cluster)
    cluster.simulation.run_scenario(demo.scenario)
    create_waiting_example(cluster.registry, demo.scenario)
    if demo.ledger and demo.ledger.exists():
        identity = cluster.registry.read("namespaces", ("", "kube-system")).doc["metadata"]["uid"]
        until_us = _end_us(demo.ledger, identity)
        cluster.simulation.run_until(until_us)
        cluster.clock.skip_to(until_us)
    return _Environment(cluster, agents=agents)


def _end_us(path: Path, identity: str) -> int:
    """The time up to which the ledger covers this cluster. Raises: LedgerError if it belongs to another cluster."""
    with SqliteLedger(path) as ledger:
        ledger.bind(identity)
        saved = ledger.saved(now_us=MONDAY_SIX_US)
    return max(saved.at_us, saved.evaluated_us)


@contextmanager
def _files(demo: Demo) -> Iterator[partial[Settings]]:
    """The aggregator's settings, with its example configuration, and a kubeconfig once the URL is known."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="gputally-demo-")))
        examples = stack.enter_context(as_file(files("gputally.demo") / "examples"))
        yield partial(_settings, demo, scratch, examples)


def _settings(demo: Demo, scratch: Path, examples: Path, url: str, *, agents_port: int | None) -> Settings:
    kubeconfig = scratch / "kubeconfig"
    context = {"cluster": "demo", "user": "demo"}
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "demo", "cluster": {"server": url}}],
                "users": [{"name": "demo", "user": {}}],
                "contexts": [{"name": "demo", "context": context}],
                "current-context": "demo",
            }
        )
    )
    return Settings(
        config=examples / f"demo-{'trace' if demo.trace else demo.scenario}.yaml",
        prices=examples / "demo-prices.yaml",
        ledger=str(demo.ledger or scratch / "gputally.db"),
        kubeconfig=str(kubeconfig),
        watched=_WATCHED,
        addresses=(demo.address,),
        budgets_interval_s=_BUDGETS_SECONDS,
        agents=AgentOptions(port=agents_port, interval_s=1) if agents_port else AgentOptions(),
    )
