"""A simulated cluster that runs in real or scaled time and serves its API on a loopback port."""

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from aiohttp import web

from gputally_sim.api.api import Api
from gputally_sim.api.faults import Faults
from gputally_sim.api.registry import Registry
from gputally_sim.api.store import DEFAULT_WINDOW, Store
from gputally_sim.clock import SimClock
from gputally_sim.node.nodes import Nodes
from gputally_sim.scenarios.fleet import Fleet
from gputally_sim.simulation import Simulation

_ACTIONS_PER_TURN = 50
"""Maximum actions before control returns to watches and requests."""


class SimCluster:
    """Use as `async with SimCluster(...) as cluster`; inside, `cluster.url` serves the API and time advances.

    Args:
        seed: determines every name, uid and decision.
        speed: simulated seconds per real second.
        start_us: the simulated start time, in µs since the epoch.
        port: 0 selects a free port.
        token: the bearer token that clients must send; "" disables authentication.
        bookmark_s: real seconds between bookmarks.
        window: changes kept per resource, from which a watch can resume.
    """

    def __init__(  # noqa: PLR0913 - settings of one thing, all optional
        self,
        *,
        seed: int = 0,
        speed: float = 1.0,
        start_us: int,
        port: int = 0,
        token: str = "",
        bookmark_s: float = 60.0,
        window: int = DEFAULT_WINDOW,
    ) -> None:
        self.simulation = Simulation(seed=seed, start_us=start_us, window=window)
        self.clock = SimClock(start_us, speed)
        self.url = ""
        """`http://127.0.0.1:PORT`, set on entry."""
        self._port = port
        self._api = Api(self.registry, self.clock, self.faults, token=token, bookmark_s=bookmark_s)
        self._wake = asyncio.Event()
        self._exits = AsyncExitStack()
        self.simulation.agenda.on_earlier = self._wake.set

    @property
    def registry(self) -> Registry:
        """Writes objects without HTTP."""
        return self.simulation.registry

    @property
    def store(self) -> Store:
        """All objects."""
        return self.simulation.store

    @property
    def faults(self) -> Faults:
        """Faults to inject."""
        return self.simulation.faults

    @property
    def nodes(self) -> Nodes:
        """Controls the lifecycle of nodes."""
        return self.simulation.nodes

    def now_us(self) -> int:
        """The simulated time: the clock's, unless the simulation lags behind."""
        agenda = self.simulation.agenda
        agenda.catch_up(self.clock.now_us())
        return agenda.now_us

    def run_scenario(self, name: str, fleet: Fleet | None = None) -> None:
        """Start scenario `name` (a key of SCENARIOS) now; its first objects exist on return."""
        self.simulation.run_scenario(name, fleet)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as exits:
            runner = web.AppRunner(self._api.application(), handler_cancellation=True, shutdown_timeout=1.0)
            exits.push_async_callback(runner.cleanup)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", self._port)
            await site.start()
            tasks = await exits.enter_async_context(asyncio.TaskGroup())
            actor = tasks.create_task(self._run(), name="simulation")
            exits.callback(actor.cancel)
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            self._exits = exits.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._exits.aclose()  # not passing `error`, which would be wrapped in an ExceptionGroup

    async def _run(self) -> None:
        """Main loop: run due actions, then wait for the next one."""
        agenda = self.simulation.agenda
        while True:
            self._wake.clear()
            if agenda.run_until(self.clock.now_us(), limit=_ACTIONS_PER_TURN):
                await self._wait(agenda.next_us)
            else:
                await asyncio.sleep(0)

    async def _wait(self, due_us: int | None) -> None:
        pause = None if due_us is None else self.clock.real_seconds_until(due_us)
        try:
            async with asyncio.timeout(pause):
                await self._wake.wait()
        except TimeoutError:
            pass
