"""The agent of a simulated node: the loops and accounting of the real agent, which advance at each request."""

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
from gputally.metering.device_accounts import JOURNAL_US, DeviceAccounts
from gputally.model.health import NodeHealth
from gputally.model.units import US_PER_SECOND
from gputally.model.usage import UsageReport
from gputally.process.clock import Clock
from gputally.web.usage_route import usage_route
from gputally_sim.node.gpus import GpuNode

TURN_US: Final = 60 * US_PER_SECOND
"""Readings further apart do not measure memory; closer ones add nothing for utilisation and energy."""
_FOREVER_US: Final = 10**16


class SimAgent:
    """Measures from `begin_us` on; `clock` is the simulation's clock.

    A turn runs both loops once: at each change of device assignments, and after `turn_us` at the latest. The last turn
    is one microsecond in the past, because the present instant may still change.
    """

    def __init__(
        self, node: GpuNode, *, begin_us: int, clock: Clock, turn_us: int = TURN_US, journal_us: int = JOURNAL_US
    ) -> None:
        self.at_us = begin_us
        """The time up to which it has measured."""
        self._started = False
        self._node = node
        self._clock = clock
        self._epoch = f"{begin_us:x}"
        self._turn_us = turn_us
        # The kubelet is polled at each change, so its last response never becomes stale.
        self.books = DeviceAccounts(journal_us=journal_us, valid_us=_FOREVER_US)
        self._health = NodeHealth(version=__version__, python=sys.version.split()[0])
        kubelet = SimKubelet(node, self._now)
        self._reading = GpuLoop(SimDriver(node), self.books, self._health, clock=self._now, interval_s=1)
        self._polling = KubeletLoop(
            kubelet,
            self.books,
            self._reading.readings,
            self._health,
            clock=self._now,
            settings=AgentSettings(node=node.name),
            uids=kubelet,
        )

    def application(self) -> web.Application:
        """Serves `/v1/usage` and `/metrics`; each request first catches up."""

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
        """The response of `/v1/usage`."""
        return self.books.report(self.at_us, self._node.name, self._epoch)

    async def catch_up(self) -> None:
        """Run all turns up to now."""
        now_us = self._clock() - 1
        if not self._started:
            self._started = True
            await self._turn(self.at_us)
        changes = self._node.changes(self.at_us, now_us)
        for upto_us in (*changes, now_us):
            while self.at_us + self._turn_us < upto_us:
                await self._turn(self.at_us + self._turn_us)
            if self.at_us < upto_us:
                await self._turn(upto_us)
        self._node.forget(self.at_us)

    async def _turn(self, at_us: int) -> None:
        """Read the GPUs under the previous assignments, then poll for the new assignments."""
        self.at_us = at_us
        await self._reading.step()
        await self._polling.step()

    def _now(self) -> int:
        return self.at_us
