"""The agent of a simulated node: the loops and accounting of the real agent, on a simulated driver and kubelet."""

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec.structs import replace

from gputally import __version__
from gputally.agent.agent_settings import AgentSettings
from gputally.agent.gpu_loop import GpuLoop
from gputally.agent.kubelet_loop import KubeletLoop
from gputally.agent.responses import exposition, node_view, usage_route
from gputally.devices.kubelet.device_assignments import DeviceAssignment, parse
from gputally.devices.nvml.gpu_worker import Trouble, TroubleReason
from gputally.metering.device_accounts import JOURNAL_US, DeviceAccounts
from gputally.model.devices import Gpu, GpuCondition, Part, PartAllocations, Process, Reading, Source, Span
from gputally.model.health import NodeHealth
from gputally.model.units import GPU, US_PER_SECOND
from gputally.model.usage import UsageCursor, UsageReport
from gputally.process.clock import Clock
from gputally_sim.node.gpus import GpuNode, SimGpu

_FIRST_PID: Final = 1000
TURN_US: Final = 60 * US_PER_SECOND
"""Readings further apart do not measure memory; closer ones add nothing for utilisation and energy."""
_FOREVER_US: Final = 10**16


class SimDriver:
    """Reads the node's GPUs; each reading covers the time since the previous reading of that GPU."""

    def __init__(self, node: GpuNode) -> None:
        self._node = node
        self._read_us: dict[int, int] = {}

    async def read_all(self, now_us: int) -> Sequence[Reading | Trouble]:
        """One reading for each GPU."""
        return [self._read(gpu, now_us) for gpu in self._node.gpus]

    def xids(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """No errors are simulated."""
        return {}

    def _read(self, gpu: SimGpu, now_us: int) -> Reading | Trouble:
        if gpu.index in self._node.lost:
            return Trouble(uuid=gpu.uuid, reason=TroubleReason.LOST, text="GPU is lost")
        part, power = self._measure(gpu, self._read_us.get(gpu.index, now_us), now_us)
        self._read_us[gpu.index] = now_us
        return Reading(
            gpu=Gpu(uuid=gpu.uuid, index=gpu.index, minor=gpu.index, model=gpu.model, pci_bus_id=_bus_id(gpu.index)),
            at_us=now_us,
            mig=False,
            parts=(part,),
            condition=GpuCondition(
                power=power, power_limit=gpu.full_power, energy=self._node.energy(gpu.index, now_us)
            ),
        )

    def _measure(self, gpu: SimGpu, from_us: int, now_us: int) -> tuple[Part, int]:
        """The activity of the GPU since `from_us`, and its current power."""
        spans = list(self._node.spans(gpu.index, from_us, now_us)) if from_us < now_us else []
        uses = self._node.uses(gpu.index, from_us, now_us) if spans else []
        part = Part(
            uuid=gpu.uuid,
            weight=GPU,
            source=Source.SAMPLES,
            busy=tuple(Span(*span) for span in spans),
            memory_used=sum(use.memory for use in uses),
            memory_total=gpu.memory,
            processes=tuple(
                Process(pid=_FIRST_PID + index, memory=use.memory, busy=use.busy, pod_uid=use.uid)
                for index, use in enumerate(uses)
            ),
        )
        return part, gpu.power(spans[-1][2] if spans else 0)


class SimKubelet:
    """Lists the device assignments of the node, and resolves the UIDs of their pods."""

    def __init__(self, node: GpuNode, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._offered = {node.resource: node.device_ids()}

    async def list(self) -> tuple[DeviceAssignment, ...]:
        """The current device assignments."""
        return tuple(
            DeviceAssignment(
                namespace=each.namespace,
                pod=each.pod,
                container=grant.container,
                device=parse(self._node.device_id(grant.gpu, grant.unit)),
                resource=self._node.resource,
            )
            for each in self._node.assignments(self._clock())
            for grant in each.grants
        )

    async def allocatable(self) -> Mapping[str, frozenset[str]]:
        """All devices: none is ever unhealthy."""
        return self._offered

    def name(self, allocations: PartAllocations) -> PartAllocations:
        """The allocations with the UIDs of their pods."""
        uids = {(each.namespace, each.pod): each.uid for each in self._node.assignments(allocations.at_us)}
        named = (replace(held, pod_uid=uids.get((held.namespace, held.pod), "")) for held in allocations.held)
        return replace(allocations, held=tuple(named))


def _bus_id(index: int) -> str:
    return f"00000000:{index + 1:02X}:00.0"


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

    def report(self, cursor: UsageCursor | None = None) -> UsageReport:
        """The response of `/v1/usage`; with a `cursor`, what changed since that report."""
        return self.books.report(self.at_us, self._node.name, self._epoch, cursor=cursor)

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
