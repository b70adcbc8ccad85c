"""The agent of a simulated node: the loops and books of the real one, which take their turns when it is asked."""

import sys
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from gputally import __version__
from gputally.agent.agent_settings import AgentSettings
from gputally.agent.gpu_loop import GpuLoop
from gputally.agent.kubelet_loop import KubeletLoop
from gputally.agent.node_exposition import exposition, node_view
from gputally.demo.sim_sources import SimDriver, SimKubelet
from gputally.export.usage_route import usage_route
from gputally.metering.device_accounts import JOURNAL_US, DeviceAccounts
from gputally.model.measured.node_health import NodeHealth
from gputally.model.measured.usage_report import UsageReport
from gputally.model.units import US_PER_SECOND
from gputally.process.clock import Clock
from gputally_sim.node.gpus import GpuNode

TURN_US: Final = 60 * US_PER_SECOND
"""Readings further apart say nothing about memory; of utilisation and energy, closer ones would not say more."""
_FOR_EVER_US: Final = 10**16


class SimAgent:
    """What it measures begins at `begin_us`; `clock` tells the time of the simulation.

    A turn is taken whenever others hold the devices than before, and after `turn_us` at the latest. The last one is a
    microsecond ago: at the very present something may still happen.
    """

    def __init__(
        self, node: GpuNode, *, begin_us: int, clock: Clock, turn_us: int = TURN_US, journal_us: int = JOURNAL_US
    ) -> None:
        self.at_us = begin_us
        """Up to when it has measured."""
        self._begun = False
        self._node = node
        self._clock = clock
        self._epoch = f"{begin_us:x}"
        self._turn_us = turn_us
        # What a kubelet says that is asked at every change stays right until then.
        self.books = DeviceAccounts(journal_us=journal_us, believed_us=_FOR_EVER_US)
        self._health = NodeHealth(version=__version__, python=sys.version.split()[0])
        kubelet = SimKubelet(node, self._now)
        self._reading = GpuLoop(SimDriver(node), self.books, self._health, clock=self._now, interval_s=1)
        self._asking = KubeletLoop(
            kubelet,
            self.books,
            self._reading.readings,
            self._health,
            clock=self._now,
            settings=AgentSettings(node=node.name),
            uids=kubelet,
        )

    def application(self) -> web.Application:
        """Answers `/v1/usage` and `/metrics`, for which it first catches up."""

        @web.middleware
        async def caught_up(request: web.Request, handler: Handler) -> web.StreamResponse:
            await self.catch_up()
            return await handler(request)

        application = web.Application(middlewares=[caught_up])
        application.router.add_routes([usage_route(self.report), web.get("/metrics", self._scrape)])
        return application

    async def _scrape(self, _: web.Request) -> web.Response:
        view = node_view(self._reading, self.books, self._health, now_us=self.at_us)
        return web.Response(body=exposition(view, openmetrics=False), content_type="text/plain")

    def report(self) -> UsageReport:
        """What `/v1/usage` answers."""
        return self.books.report(self.at_us, self._node.name, self._epoch)

    async def catch_up(self) -> None:
        """Take all turns up to now."""
        now_us = self._clock() - 1
        if not self._begun:
            self._begun = True
            await self._turn(self.at_us)
        changes = self._node.changes(self.at_us, now_us)
        for upto_us in (*changes, now_us):
            while self.at_us + self._turn_us < upto_us:
                await self._turn(self.at_us + self._turn_us)
            if self.at_us < upto_us:
                await self._turn(upto_us)
        self._node.forget(self.at_us)

    async def _turn(self, at_us: int) -> None:
        """What was up to then is read while it is known who had it; then, who has it from then on."""
        self.at_us = at_us
        await self._reading.step()
        await self._asking.step()

    def _now(self) -> int:
        return self.at_us
