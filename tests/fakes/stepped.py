"""Runs the real aggregator on a simulated cluster without waiting: time jumps from one change to the next.

After each change the aggregator first accounts it, so it observes everything within milliseconds of simulated time, as
on a real cluster. Between jumps, time passes as in reality, or stands still.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

from gputally.aggregator.aggregator import RunningAggregator, aggregate
from gputally.aggregator.settings import Settings
from gputally.model.kube.kinds import Kind
from gputally_sim.cluster import SimCluster
from tests.fakes.kubeconfigs import kubeconfig
from tests.fakes.until import until

EXAMPLES: Final = Path(str(files("gputally.demo") / "examples"))
BOOKMARK_S: Final = 0.01
"""Real seconds between bookmarks, so that no watch seems interrupted for minutes."""
STANDSTILL: Final = 1e-9
"""The speed of a cluster whose time passes only in jumps."""
_AWAITED: Final = (Kind.PODS, Kind.NODES, Kind.EVENTS, Kind.JOBS, Kind.DISRUPTION_BUDGETS)


class SteppedCluster:
    """A simulated cluster and its aggregator."""

    def __init__(self, cluster: SimCluster, running: RunningAggregator) -> None:
        self.url = f"http://{running.addresses[0]}"
        self.running = running
        self._cluster = cluster

    async def advance(self, until_us: int) -> None:
        """Jump to every change up to `until_us`, and to that; then the ledger has it.

        Call it for some minutes at a time: the aggregator writes what it knows of ended pods within an hour.
        """
        agenda = self._cluster.simulation.agenda
        while (due_us := agenda.next_us) is not None and due_us < until_us:
            await self._jump(due_us)
        await self._jump(until_us)
        complete_us = self.running.pipeline.fleet.coverage.complete_us
        await until(lambda: complete_us(Kind.DISRUPTION_BUDGETS) >= until_us)
        await self.written()

    async def written(self) -> None:
        """Write the latest changes to the ledger."""
        if self.running.pipeline.accountant.changed.is_set():
            await self.running.pipeline.writer.flush()

    def now_us(self) -> int:
        return self._cluster.now_us()

    async def _jump(self, us: int) -> None:
        self._cluster.clock.skip_to(us)
        self._cluster.simulation.run_until(us)
        await until(self.has_accounted)
        fleet = self.running.pipeline.fleet
        fleet.reconcile()  # by itself, it puts the updates of 0.1 s together: here some hours
        fleet.waiting.judge(at_us=self.now_us())  # else pods keep the reason of hours ago
        self.running.pipeline.accountant.advance(now_us=self.now_us())

    def has_accounted(self) -> bool:
        """Whether every watch has delivered the latest version, and all of it is accounted."""
        store, resumes = self._cluster.store, self.running.pipeline.fleet.coverage.resumes
        return all(
            (seen := resumes.get(kind)) and int(seen.version) >= store.version_of(kind)
            for kind in _AWAITED
            if store.version_of(kind)
        )


@asynccontextmanager
async def stepped(cluster: SimCluster, settings: Settings) -> AsyncIterator[SteppedCluster]:
    """The aggregator on a running cluster, once it has read it. Its ledger is complete on exit."""
    started = asyncio.get_running_loop().create_future()
    aggregator = asyncio.create_task(aggregate(settings, cluster.now_us, started=started.set_result))
    try:
        await asyncio.wait((aggregator, started), return_when=asyncio.FIRST_COMPLETED)
        if aggregator.done():
            aggregator.result()
        running = started.result()
        await until(lambda: not running.ready().missing)
        yield SteppedCluster(cluster, running)
    finally:
        aggregator.cancel()
        await asyncio.wait([aggregator])


def demo_settings(
    scenario: str, scratch: Path, ledger: Path, *, url: str, watched: Sequence[str] = (Kind.DISRUPTION_BUDGETS,)
) -> Settings:
    """The demo's configuration and prices for a scenario, and these optional resources."""
    return Settings(
        config=EXAMPLES / f"demo-{scenario}.yaml",
        prices=EXAMPLES / "demo-prices.yaml",
        ledger=str(ledger),
        kubeconfig=kubeconfig(scratch / "kube", url, {}),
        addresses=("127.0.0.1:0",),
        watched=tuple(watched),
    )
