"""Agents on all GPU nodes of a simulated cluster, which the aggregator discovers like real ones.

Each agent is a pod of the cluster with its own IP address, and listens on a port that all share: nodes come and go
while the aggregator runs, but it reads `agents.urls` only once. The addresses are loopback addresses, so other machines
cannot connect. Outside Linux, they must first be assigned to the interface; agents that cannot listen are skipped.
"""

import asyncio
import logging
import os
import socket
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from gputally.demo.sim_agent import TURN_US, SimAgent
from gputally.metering.device_accounts import JOURNAL_US
from gputally.model.rules import AgentMarks
from gputally.model.units import US_PER_SECOND
from gputally.process.log import Once
from gputally_sim.api.store import Change, Verb
from gputally_sim.cluster import SimCluster
from gputally_sim.control.daemons import ADDRESSES, Daemons
from gputally_sim.documents import Doc
from gputally_sim.node.devices import Devices
from gputally_sim.node.pods import is_active, node_of

_NAME: Final = "gputally-agent"
_MARKS: Final = AgentMarks()
_READINGS_PER_SECOND: Final = 1400
"""GPU readings per real second: a tenth of a core. In larger clusters, each GPU is read less often."""
_JOURNAL_SECONDS: Final = 30.0
"""Ended containers are reported for this real time, however long it is simulated: enough for several pulls."""

logger = logging.getLogger(__name__)


class SimAgents:
    """`async with SimAgents(cluster) as agents`: each agent then serves at the address of its pod and `agents.port`.

    Create it with a new cluster, before the scenario starts, so that all runs of a seed have the same history.
    """

    def __init__(self, cluster: SimCluster) -> None:
        self.agents: dict[str, SimAgent] = {}
        """Simulated agents by node."""
        self.port = 0
        self._cluster = cluster
        self._devices = Devices(cluster.registry, seed=cluster.simulation.seed)
        Daemons(cluster.registry, name=_NAME, namespace=_MARKS.namespace, labels=dict(_MARKS.labels))
        self._runners: dict[str, web.AppRunner] = {}
        self._problems = Once(logger, "simulated agents")
        self._changes = asyncio.Queue[Change]()
        self._exits = AsyncExitStack()
        self._entered_us = 0

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as exits:
            anchor = exits.enter_context(_reserved())
            self.port = anchor.getsockname()[1]
            self._entered_us = self._cluster.now_us()
            exits.push_async_callback(self._close)
            store = self._cluster.store
            for plural in ("pods", "nodes"):
                exits.callback(store.subscribe(plural, self._observe))
            for pod in store.docs("pods"):
                await self._start(pod)
            tasks = await exits.enter_async_context(asyncio.TaskGroup())
            exits.callback(tasks.create_task(self._follow(), name="simulated agents").cancel)
            self._exits = exits.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._exits.aclose()  # without `error`, which would be wrapped in an ExceptionGroup

    def _observe(self, change: Change) -> None:
        is_ours = change.plural == "nodes" or change.key[0] == _MARKS.namespace
        if is_ours and (change.plural == "pods" or change.verb is Verb.DELETED):
            self._changes.put_nowait(change)

    async def _follow(self) -> None:
        """Start agents with their pods, and stop them with their nodes, forever."""
        while True:
            change = await self._changes.get()
            if change.plural == "nodes":
                await self._stop(change.key[1])
            elif change.verb is not Verb.DELETED:
                await self._start(change.now.doc)

    async def _start(self, pod: Doc) -> None:
        """Start the agent of an agent pod, if it does not run yet."""
        address, name = pod["status"].get("podIP", ""), node_of(pod)
        node = self._devices.nodes.get(name)
        is_agent = pod["metadata"]["namespace"] == _MARKS.namespace and is_active(pod)
        if not (is_agent and node and address) or name in self.agents:
            return
        begin_us = max(self._entered_us, node.joined_us)  # not the time of discovery, which depends on real time
        agent = SimAgent(
            node, begin_us=begin_us, clock=self._cluster.now_us, turn_us=self._turn_us(), journal_us=self._journal_us()
        )
        runner = web.AppRunner(agent.application(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, address, self.port).start()
        except OSError as error:
            self._problems.warn(
                f"cannot listen on 127.64.*: {os.strerror(error.errno or 0)}; without them, usage is not measured"
            )
            await runner.cleanup()
        else:
            self.agents[name], self._runners[name] = agent, runner

    def _turn_us(self) -> int:
        gpus = sum(len(node.gpus) for node in self._devices.nodes.values())
        return max(TURN_US, self._simulated_us(gpus / _READINGS_PER_SECOND))

    def _journal_us(self) -> int:
        return max(JOURNAL_US, self._simulated_us(_JOURNAL_SECONDS))

    def _simulated_us(self, real_seconds: float) -> int:
        return int(real_seconds * self._cluster.clock.speed * US_PER_SECOND)

    async def _stop(self, name: str) -> None:
        self.agents.pop(name, None)
        if runner := self._runners.pop(name, None):
            await runner.cleanup()

    async def _close(self) -> None:
        for name in tuple(self._runners):
            await self._stop(name)


def _reserved() -> socket.socket:
    """A socket that reserves its port on all loopback addresses while it is open."""
    anchor = socket.socket()
    try:
        anchor.bind((str(ADDRESSES), 0))
    except OSError:  # without that address, no agent can listen, and any port works
        anchor.bind(("127.0.0.1", 0))
    return anchor
