"""Runs the product on a cluster under load with injected faults, and reports the result."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from gputally_sim.trace.replay import Replay
from labs.campaign.churn import GPUS, NODES, TEAMS, TIERS, Churn
from labs.campaign.disk import Disk
from labs.campaign.disruptions import Disruptions, Timeline, clock_disruptions, disk_disruptions
from labs.campaign.killer import Age, Killer
from labs.campaign.supervisor import Supervisor
from labs.campaign.verdict import Verdict, judge, noticed_victims
from labs.campaign.wall_clock import WallClock
from tests.behaviour.product import Samples, total
from tests.behaviour.published import WAITS, differences, surplus
from tests.behaviour.recorder import until
from tests.behaviour.scrapes import Scrapes
from tests.behaviour.stage import Stage

PODS_PER_KILL = 8
"""Expected minimum; about 14 is typical."""
FIRST_STARTS = 5
EVENTS_TIMEOUT_S = 70
"""The product waits one minute for the Event that names a preemptor, and checks every few seconds."""
REPORTS = Path(__file__).parents[2] / "build"


@dataclass
class Environment:
    """The cluster of a campaign; without `disk` or `clock`, these are not disturbed."""

    name: str
    stage: Stage
    server_disruptions: Timeline
    """Disruptions of the API server."""
    disk: Disk | None = None
    clock: WallClock | None = None
    replay: Replay | None = None
    """Replay of a recorded trace, in addition to the churn."""
    supervisor: Supervisor | None = None

    def timelines(self) -> Mapping[str, Timeline]:
        return {
            "servers": self.server_disruptions,
            "disk": disk_disruptions(self.disk) if self.disk else {},
            "clock": clock_disruptions(self.clock) if self.clock else {},
        }


class Campaign:
    """One run; the attributes hold its results."""

    def __init__(self, environment: Environment, *, kills: int, seed: int) -> None:
        self.environment = environment
        self.product = environment.stage.product
        self.killer = Killer(self.product, kills=kills, seed=seed)
        self.disruptions = Disruptions(self.killer, environment.timelines(), seed=seed)
        self.scrapes = Scrapes(self.product.url)
        self._random = Random(f"{seed} first starts")
        self.churn = Churn(environment.stage.api, seed=seed)
        self.lasted_s = 0.0

    async def run(self) -> None:
        """Run from an empty cluster to an empty cluster; the product is up and idle at the end."""
        started_s = time.monotonic()
        await self.environment.stage.furnish(nodes=NODES, gpus=GPUS, tiers=TIERS, teams=TEAMS)
        await self._start_accounting()
        scraper = asyncio.create_task(self.scrapes.run())
        supervisor = asyncio.create_task(self.environment.supervisor.run()) if self.environment.supervisor else None
        await self._churn_and_kill()
        await self.killer.revive()
        if replay := self.environment.replay:
            await until(lambda: replay.progress == 1, within=120)
        await self.churn.stop()
        await self.environment.stage.recorder.complete()
        await self.product.query_until("SELECT 1 FROM current_segments WHERE end_us IS NULL", lambda rows: not rows)
        await self._count_preemptions()
        for task in filter(None, (scraper, supervisor)):
            task.cancel()
        self.lasted_s = time.monotonic() - started_s

    async def _start_accounting(self) -> None:
        """Start the accounting before any pod exists; a scrape writes all changes to the ledger.

        The first starts are killed, some while they create the ledger: none may leave what the next one rejects.
        """
        for _ in range(FIRST_STARTS):
            await self.product.launch()
            await asyncio.sleep(self._random.uniform(*Age.STARTING.value))
            assert self.product.is_alive, self.product.log.read_text()
            await self.product.kill()
        await self.product.start()
        await self.product.scrape()
        await self.product.kill()

    async def _churn_and_kill(self) -> None:
        """Run churn, kills and disruptions concurrently, until the last kill."""
        if self.environment.replay:
            self.environment.replay.begin()
        async with asyncio.TaskGroup() as tasks:
            churn = tasks.create_task(self.churn.run())
            disruptions = tasks.create_task(self.disruptions.run())
            await self.killer.run()
            await disruptions
            churn.cancel()

    async def _count_preemptions(self) -> None:
        """Wait as long as the product waits for Events; the verdict reports missing ones.

        An Event may be missing: kube-scheduler sends none for a pod that another client deletes between the scheduler's
        condition update and its own deletion. If the API server is down, it sends the Event later or never.
        """
        victims = noticed_victims(self.environment.stage.recorder, self.product)
        with suppress(TimeoutError):
            await until(lambda: victims <= self.product.victims(), within=EVENTS_TIMEOUT_S)

    def verdict(self) -> Verdict:
        """Compare the ledger to the truth."""
        return judge(self.environment.stage.recorder, self.product)

    async def rest(self) -> list[str]:
        """Errors in the metrics after all activity has ended."""
        samples = await self.product.released()
        bill = self.product.bill()
        overcount_s = total(samples, "gputally_overcount_gpu_seconds", counter="allocated")
        surplus_s = total(samples, "gputally_allocated_gpu_seconds_total") - sum(bill.time.values()) / 10**12
        shown = {labels: v for (name, labels), v in samples.items() if name == "gputally_allocated_gpu_seconds_total"}
        behind = [
            f"{dict(group)} behind: {shown.get(group)} of {gpu_time / 10**12}"
            for group, gpu_time in self.product.counted().items()
            if shown.get(group, 0) < gpu_time / 10**12 - 1e-9
        ]
        difference = [f"residual {value}" for value in differences(samples) if value]
        more = [f"{surplus_s} more than the truth"] if abs(surplus_s - overcount_s) > 1e-6 else []
        return behind + difference + more + list(self._unstated(samples))

    def _unstated(self, samples: Samples) -> Iterator[str]:
        """Counters of waits that exceed the waits in the ledger by anything but their overcount."""
        for counter, (metric, _, _) in WAITS.items():
            unit = "cost" if counter.endswith("_cost") else "gpu_seconds"
            overcount = total(samples, f"gputally_overcount_{unit}", counter=counter)
            exceeds = surplus(samples, self.product, counter)
            if abs(exceeds - overcount) > 1e-6:
                yield f"{metric} exceeds the ledger by {exceeds}, and its overcount is {overcount}"

    def inconclusive_reasons(self, verdict: Verdict) -> list[str]:
        """Reasons why this campaign is inconclusive because too little happened."""
        expected, disk = PODS_PER_KILL * self.killer.kills, self.environment.disk
        found = []
        if verdict.pods < expected:
            found.append(f"only {verdict.pods} pods had GPUs, not {expected}: did part of the cluster stand still?")
        if disk and not self.scrapes.unwritten:
            found.append(f"the disk was full for {disk.full_s:.0f} s, but no scrape met a ledger that refused")
        return found

    def report(self, verdict: Verdict) -> str:
        """The figures as text; they are also written to a file."""
        disk, clock = self.environment.disk, self.environment.clock
        figures = {
            "cluster": self.environment.name,
            "seconds": round(self.lasted_s),
            "load": "churn and trace" if self.environment.replay else "churn",
            "kills": self.killer.hits,
            "launches": self.killer.launches,
            "died by themselves": [f"after {d.after_kills}: {d.message}" for d in self.killer.deaths],
            "disruptions": self.disruptions.counts,
            "components revived": dict(self.environment.supervisor.revived) if self.environment.supervisor else None,
            "seconds with a full disk": round(disk.full_s, 1) if disk else None,
            "scrapes while the ledger refused": self.scrapes.unwritten,
            "clock steps, s": clock.steps if clock else None,
            "GPU-seconds": round(sum(self.product.bill().time.values()) / 10**12, 1),
            "scrapes": self.scrapes.count,
            "falls": len(self.scrapes.falls),
            "residual samples above 0": len(self.scrapes.differences),
            "longest gap between scrapes, s": round(self.scrapes.longest_gap_s, 1),
            **verdict.figures(),
        }
        REPORTS.mkdir(exist_ok=True)
        (REPORTS / f"campaign-{self.environment.name}-{self.killer.kills}.json").write_text(
            json.dumps(figures, indent=2)
        )
        return "".join(f"  {name}: {value}\n" for name, value in figures.items())
