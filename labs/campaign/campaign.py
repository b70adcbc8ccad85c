"""A cluster under load, the product on it, and all that befalls both; and what is left to say afterwards."""

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gputally_sim.trace.replay import Replay
from labs.campaign.churn import GPUS, NODES, TEAMS, TIERS, Churn
from labs.campaign.disk import Disk
from labs.campaign.killer import Killer
from labs.campaign.supervisor import Supervisor
from labs.campaign.upheavals import Timeline, Upheavals, of_disk, of_wall_clock
from labs.campaign.verdict import Verdict, judge, noticed_victims
from labs.campaign.wall_clock import WallClock
from tests.behaviour.product import total
from tests.behaviour.published import differences
from tests.behaviour.recorder import until
from tests.behaviour.scrapes import Scrapes
from tests.behaviour.stage import Stage

PODS_PER_KILL = 8
"""At least; some 14 are usual."""
PATIENCE_S = 70
"""The product waits a minute for the Event that names a preemptor, and looks every few seconds."""
REPORTS = Path(__file__).parents[2] / "build"


@dataclass
class Ground:
    """Where a campaign takes place; without disk or clock these do as they should."""

    name: str
    stage: Stage
    troubles: Timeline
    """What may befall the API server."""
    disk: Disk | None = None
    clock: WallClock | None = None
    replay: Replay | None = None
    """Of a recorded trace, beside the churn."""
    supervisor: Supervisor | None = None

    def timelines(self) -> Mapping[str, Timeline]:
        return {
            "servers": self.troubles,
            "disk": of_disk(self.disk) if self.disk else {},
            "clock": of_wall_clock(self.clock) if self.clock else {},
        }


class Campaign:
    """Runs once; then its parts tell what happened."""

    def __init__(self, ground: Ground, *, kills: int, seed: int) -> None:
        self.ground = ground
        self.product = ground.stage.product
        self.killer = Killer(self.product, kills=kills, seed=seed)
        self.upheavals = Upheavals(self.killer, ground.timelines(), seed=seed)
        self.scrapes = Scrapes(self.product.url)
        self.churn = Churn(ground.stage.api, seed=seed)
        self.lasted_s = 0.0

    async def run(self) -> None:
        """From an empty cluster to an empty cluster, with the product up and at rest in the end."""
        began_s = time.monotonic()
        await self.ground.stage.furnish(nodes=NODES, gpus=GPUS, tiers=TIERS, teams=TEAMS)
        await self._open_books()
        scraper = asyncio.create_task(self.scrapes.run())
        supervisor = asyncio.create_task(self.ground.supervisor.run()) if self.ground.supervisor else None
        await self._fight()
        await self.killer.revive()
        if replay := self.ground.replay:
            await until(lambda: replay.progress == 1, within=120)
        await self.churn.stop()
        await self.ground.stage.recorder.complete()
        await self.product.query_until("SELECT 1 FROM current_segments WHERE end_us IS NULL", lambda rows: not rows)
        await self._count_preemptions()
        for task in filter(None, (scraper, supervisor)):
            task.cancel()
        self.lasted_s = time.monotonic() - began_s

    async def _open_books(self) -> None:
        """What came before is nobody's business, so begin before anything does; a scrape leaves nothing unwritten."""
        await self.product.start()
        await self.product.scrape()
        await self.product.kill()

    async def _fight(self) -> None:
        """Churn, kills and upheavals at once, until the last kill."""
        if self.ground.replay:
            self.ground.replay.begin()
        async with asyncio.TaskGroup() as tasks:
            churn = tasks.create_task(self.churn.run())
            upheavals = tasks.create_task(self.upheavals.run())
            await self.killer.run()
            await upheavals
            churn.cancel()

    async def _count_preemptions(self) -> None:
        """Wait as long as the product waits for Events; what is missing then is for the verdict.

        There may be none: kube-scheduler sends no Event of a pod that somebody else deletes between its mark and its
        own deletion, and sends one again only later, or never, if the API server was down.
        """
        victims = noticed_victims(self.ground.stage.recorder, self.product)
        with suppress(TimeoutError):
            await until(lambda: victims <= self.product.victims(), within=PATIENCE_S)

    def verdict(self) -> Verdict:
        """The ledger against the truth."""
        return judge(self.ground.stage.recorder, self.product)

    async def rest(self) -> list[str]:
        """What is wrong with the metrics, now that nothing happens any more."""
        samples = await self.product.released()
        bill = self.product.bill()
        ahead_s = total(samples, "gputally_overcount_gpu_seconds", counter="allocated")
        surplus_s = total(samples, "gputally_allocated_gpu_seconds_total") - sum(bill.time.values()) / 10**12
        shown = {labels: v for (name, labels), v in samples.items() if name == "gputally_allocated_gpu_seconds_total"}
        behind = [
            f"{dict(group)} behind: {shown.get(group)} of {gpu_time / 10**12}"
            for group, gpu_time in self.product.counted().items()
            if shown.get(group, 0) < gpu_time / 10**12 - 1e-9
        ]
        difference = [f"residual {value}" for value in differences(samples) if value]
        return behind + difference + ([f"{surplus_s} more than the truth"] if abs(surplus_s - ahead_s) > 1e-6 else [])

    def feints(self, verdict: Verdict) -> list[str]:
        """What this campaign only seems to have shown, as too little happened in it."""
        expected, disk = PODS_PER_KILL * self.killer.kills, self.ground.disk
        found = []
        if verdict.pods < expected:
            found.append(f"only {verdict.pods} pods had GPUs, not {expected}: did part of the cluster stand still?")
        if disk and not self.scrapes.unwritten:
            found.append(f"the disk was full for {disk.full_s:.0f} s, but no scrape met a ledger that refused")
        return found

    def report(self, verdict: Verdict) -> str:
        """The figures as text; they are kept in a file, too."""
        disk, clock = self.ground.disk, self.ground.clock
        figures = {
            "cluster": self.ground.name,
            "seconds": round(self.lasted_s),
            "load": "churn and trace" if self.ground.replay else "churn",
            "kills": self.killer.hits,
            "launches": self.killer.launches,
            "died by themselves": [f"after {d.after_kills}: {d.words}" for d in self.killer.deaths],
            "upheavals": self.upheavals.counts,
            "components revived": dict(self.ground.supervisor.revived) if self.ground.supervisor else None,
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
        (REPORTS / f"campaign-{self.ground.name}-{self.killer.kills}.json").write_text(json.dumps(figures, indent=2))
        return "".join(f"  {name}: {value}\n" for name, value in figures.items())
