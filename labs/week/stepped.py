"""Runs the real aggregator on a simulated cluster without waiting: time jumps from one change to the next.

After each change the aggregator first accounts it, so it observes everything within milliseconds of simulated time, as
on a real cluster. Between jumps, time passes as in reality.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

from gputally.aggregator.aggregator import RunningAggregator, aggregate
from gputally.aggregator.settings import Settings
from gputally.demo.demo import MONDAY_SIX_US
from gputally.demo.waiting_example import create_waiting_example
from gputally.model.kube import Kind
from gputally_sim.cluster import SimCluster
from labs.week import practices
from tests.fakes.kubeconfigs import kubeconfig

SCENARIO: Final = "s1"
SEED: Final = 2
_WATCHED: Final = (Kind.PODS, Kind.EVENTS, Kind.JOBS, Kind.DISRUPTION_BUDGETS)
_POLL_S: Final = 0.001
_BOOKMARK_S: Final = 0.01
"""Real seconds, so that no watch seems interrupted for minutes."""


class SteppedCluster:
    """A simulated cluster and its aggregator."""

    def __init__(self, cluster: SimCluster, running: RunningAggregator) -> None:
        self.url = f"http://{running.addresses[0]}"
        self._cluster = cluster
        self._running = running

    async def advance(self, until_us: int) -> None:
        """Jump to every change up to `until_us`, and to that; then the ledger has it.

        Call it for some minutes at a time: the aggregator writes what it knows of ended pods within an hour.
        """
        agenda = self._cluster.simulation.agenda
        while (due_us := agenda.next_us) is not None and due_us < until_us:
            await self._jump(due_us)
        await self._jump(until_us)
        complete_us = self._running.pipeline.fleet.coverage.complete_us
        await _until(lambda: complete_us(Kind.DISRUPTION_BUDGETS) >= until_us)
        if self._running.pipeline.accountant.changed.is_set():
            await self._running.pipeline.writer.flush()

    def now_us(self) -> int:
        return self._cluster.now_us()

    async def _jump(self, us: int) -> None:
        self._cluster.clock.skip_to(us)
        self._cluster.simulation.run_until(us)
        await _until(self._has_accounted)
        fleet = self._running.pipeline.fleet
        fleet.reconcile()  # by itself, it puts the updates of 0.1 s together: here some hours
        fleet.waiting.judge(at_us=self.now_us())  # else pods keep the reason of hours ago
        self._running.pipeline.accountant.advance(now_us=self.now_us())

    def _has_accounted(self) -> bool:
        """Whether every watch has delivered the latest version, and all of it is accounted."""
        store, resumes = self._cluster.store, self._running.pipeline.fleet.coverage.resumes
        return all(
            (seen := resumes.get(kind)) and int(seen.version) >= store.version_of(kind)
            for kind in _WATCHED
            if store.version_of(kind)
        )


@asynccontextmanager
async def stepped(scratch: Path, ledger: Path) -> AsyncIterator[SteppedCluster]:
    """The cluster on a Monday, with the practices of this lab; the aggregator has read it."""
    cluster = SimCluster(seed=SEED, start_us=MONDAY_SIX_US, bookmark_s=_BOOKMARK_S)
    cluster.run_scenario(SCENARIO)
    create_waiting_example(cluster.registry, SCENARIO)
    practices.begin(cluster.registry)
    async with cluster:
        started = asyncio.get_running_loop().create_future()
        settings = _settings(scratch, ledger, url=cluster.url)
        aggregator = asyncio.create_task(aggregate(settings, cluster.now_us, started=started.set_result))
        try:
            await asyncio.wait((aggregator, started), return_when=asyncio.FIRST_COMPLETED)
            if aggregator.done():
                aggregator.result()
            running = started.result()
            await _until(lambda: not running.ready().missing)
            yield SteppedCluster(cluster, running)
        finally:
            aggregator.cancel()
            await asyncio.wait([aggregator])


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - no event signals it
        await asyncio.sleep(_POLL_S)


def _settings(scratch: Path, ledger: Path, *, url: str) -> Settings:
    examples = Path(str(files("gputally.demo") / "examples"))
    return Settings(
        config=examples / f"demo-{SCENARIO}.yaml",
        prices=examples / "demo-prices.yaml",
        ledger=str(ledger),
        kubeconfig=kubeconfig(scratch / "kube", url, {}),
        addresses=("127.0.0.1:0",),
        watched=(Kind.DISRUPTION_BUDGETS,),
    )
