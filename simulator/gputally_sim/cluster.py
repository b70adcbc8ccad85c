"""A simulated cluster that runs by itself and answers on a loopback port."""

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
"""Actions run before watches and requests get their turn."""


class SimCluster:
    """`async with SimCluster(...) as cluster`: from then on `cluster.url` answers and time passes.

    Args:
        seed: fixes every name, uid and decision.
        speed: simulated seconds per real second.
        start_us: the simulated time at the start, in µs since the epoch.
        port: 0 takes a free one.
        token: what clients must present as a bearer token; "" admits everybody.
        bookmark_s: real seconds between bookmarks.
        window: changes per resource that a watch can resume from.
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
        """`http://127.0.0.1:PORT` once entered."""
        self._port = port
        self._api = Api(self.registry, self.clock, self.faults, token=token, bookmark_s=bookmark_s)
        self._wake = asyncio.Event()
        self._exits = AsyncExitStack()
        self.simulation.agenda.on_earlier = self._wake.set

    @property
    def registry(self) -> Registry:
        """The way to write that needs no HTTP."""
        return self.simulation.registry

    @property
    def store(self) -> Store:
        """All objects."""
        return self.simulation.store

    @property
    def faults(self) -> Faults:
        """What is to go wrong."""
        return self.simulation.faults

    @property
    def nodes(self) -> Nodes:
        """Hooks on the life of nodes."""
        return self.simulation.nodes

    def now_us(self) -> int:
        """The time in the model: the clock's, unless so much happens that the simulation lags behind it."""
        agenda = self.simulation.agenda
        agenda.catch_up(self.clock.now_us())
        return agenda.now_us

    def run_scenario(self, name: str, fleet: Fleet | None = None) -> None:
        """Begin scenario `name` (a key of SCENARIOS) at the model's time; its first objects exist on return."""
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
        await self._exits.aclose()  # untold of `error`, which would come out wrapped in an ExceptionGroup

    async def _run(self) -> None:
        """The one actor: run what is due, then wait for what comes next."""
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
