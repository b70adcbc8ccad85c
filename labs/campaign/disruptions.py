"""Disrupts the product's environment; each kind of disruption has its own timeline, by number of kills."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from random import Random

from gputally_sim.api.faults import Faults
from gputally_sim.cluster import SimCluster
from labs.campaign.disk import Disk
from labs.campaign.killer import Killer
from labs.campaign.wall_clock import WallClock
from tests.cluster.control_plane import ControlPlane

Disruption = Callable[[Random], Awaitable[None]]
Timeline = Mapping[str, tuple[int, Disruption]]
"""Disruptions by name: how many per hundred kills, and the action."""

EARLIEST_S, LATEST_S = -50 * 60, 6 * 3600
"""Limits of the wall clock's offset: new certificates are not yet valid for a clock that is an hour slow."""

DAY_S = 24 * 3600


class Disruptions:
    """Runs timelines concurrently with a killer, and counts the disruptions."""

    def __init__(self, killer: Killer, timelines: Mapping[str, Timeline], *, seed: int) -> None:
        self.counts: dict[str, int] = {}
        self._killer = killer
        self._timelines = timelines
        self._seed = seed

    async def run(self) -> None:
        """Run all timelines; disruptions of the same timeline run sequentially."""
        async with asyncio.TaskGroup() as tasks:
            for name, timeline in self._timelines.items():
                tasks.create_task(self._run_timeline(timeline, Random(f"{self._seed} {name}")))

    async def _run_timeline(self, timeline: Timeline, random: Random) -> None:
        kills = self._killer.kills
        planned = [
            (random.uniform(0.03, 0.95) * kills, name)
            for name, (frequency, _) in timeline.items()
            for _ in range(max(1, round(frequency * kills / 100)))
        ]
        for hits, name in sorted(planned):
            await self._killer.reached(round(hits))
            await asyncio.sleep(random.uniform(0, 2))
            await timeline[name][1](random)
            self.counts[name] = self.counts.get(name, 0) + 1


def control_plane_disruptions(plane: ControlPlane) -> Timeline:
    """Restart the servers: a restarted API server has no history, and answers older watches with 410."""

    async def restart_api_server(_: Random) -> None:
        await plane.restart_api_server()

    async def restart_etcd(_: Random) -> None:
        await plane.restart_etcd()

    return {"restarts of the API server": (4, restart_api_server), "restarts of etcd": (3, restart_etcd)}


def simulation_disruptions(cluster: SimCluster) -> Timeline:
    """Lose history; break, stall and corrupt streams; reject requests; send wrong Date headers."""
    faults = cluster.faults

    async def lose_history(random: Random) -> None:
        faults.stall()  # changes during the stall are lost with the connections
        await asyncio.sleep(random.uniform(0.5, 3))
        cluster.store.compact()
        faults.drop_watches()
        faults.resume()

    async def break_streams(_: Random) -> None:
        faults.drop_watches()

    async def refuse(random: Random) -> None:
        faults.refuse(random.randint(1, 20), random.choice((HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY)))

    async def corrupt(random: Random) -> None:
        random.choice((faults.garble, faults.mistype, lambda: faults.repeat(random.randint(1, 20))))()

    async def stall(random: Random) -> None:
        faults.stall()
        await asyncio.sleep(random.uniform(0.5, 5))
        faults.resume()

    async def list_by_pages(random: Random) -> None:
        faults.streaming_lists = False
        await asyncio.sleep(random.uniform(1, 20))
        faults.streaming_lists = True

    return {
        "losses of history": (8, lose_history),
        "broken streams": (6, break_streams),
        "stalled streams": (6, stall),
        "corrupt streams": (6, corrupt),
        "refused requests": (6, refuse),
        "wrong dates": (6, partial(misdate, faults)),
        "times without streaming lists": (2, list_by_pages),
    }


async def misdate(faults: Faults, random: Random) -> None:
    """Answer the next watches with a Date header that is off by up to a day."""
    faults.misdate(random.randint(1, 3), ahead_us=random.choice((-1, 1)) * random.randint(5, DAY_S) * 1_000_000)
    faults.drop_watches()


def disk_disruptions(disk: Disk) -> Timeline:
    """Fill the ledger's disk for a while."""

    async def full(random: Random) -> None:
        disk.fill()
        try:
            await asyncio.sleep(random.uniform(6, 16))
        finally:
            disk.make_room()

    return {"full disks": (5, full)}


def clock_disruptions(clock: WallClock) -> Timeline:
    """Step the clock by seconds to hours, forward and back, while the product runs and between runs."""

    async def step(random: Random) -> None:
        by_s = random.choice((-1, 1)) * random.randint(1, random.choice((60, 600, 7200)))
        clock.set(clock.offset_s + (by_s if EARLIEST_S < clock.offset_s + by_s < LATEST_S else -by_s))

    return {"steps of the wall clock": (25, step)}
