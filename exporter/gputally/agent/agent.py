"""The agent of a node: the driver and the kubelet in, metrics and usage out. This file only wires."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gputally import __version__
from gputally.agent.agent_settings import AgentSettings
from gputally.agent.gpu_loop import GpuLoop
from gputally.agent.kubelet_loop import KubeletLoop
from gputally.agent.node_exposition import exposition, node_view
from gputally.devices.kubelet.device_assignments import Wanted
from gputally.devices.kubelet.pod_resources import PodResourcesClient
from gputally.devices.nvml.gpu_reader import ReadOptions
from gputally.devices.nvml.gpus import Gpus
from gputally.devices.pod_of_process import PodOfProcess
from gputally.export.process import process_registry
from gputally.export.text import registry_text
from gputally.export.usage_route import PATH, usage_route
from gputally.export.web import Readiness, Site, serve
from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.measured.node_health import NodeHealth
from gputally.model.measured.usage_report import UsageReport
from gputally.model.rules import Rules
from gputally.model.units import US_PER_HOUR, US_PER_SECOND
from gputally.process.clock import Clock, steady_clock, system_clock
from gputally.serving import own_token, policy_source

if TYPE_CHECKING:
    from gputally.export.listen import Address

STALE_SECONDS: Final = 30.0
"""After so long without any reading, or any word of the kubelet, the agent is not ready."""


class RunningAgent:
    """A running agent: its books and its loops, and where it answers."""

    def __init__(self, *, name: str, epoch: str, books: DeviceAccounts, health: NodeHealth, clock: Clock) -> None:
        self.name = name
        self.epoch = epoch
        self.books = books
        self.health = health
        self.addresses: tuple[Address, ...] = ()
        self.clock = clock
        self._registry = process_registry()

    def report(self) -> UsageReport:
        """What `/v1/usage` answers now."""
        return self.books.report(self.clock(), self.name, self.epoch)

    def exposition(self, reading: GpuLoop, *, openmetrics: bool) -> bytes:
        """What `/metrics` answers."""
        view = node_view(reading, self.books, self.health, now_us=self.clock())
        return exposition(view, openmetrics=openmetrics, more=registry_text(self._registry, openmetrics=openmetrics))

    def ready(self) -> Readiness:
        """Ready while GPUs are read, and once the kubelet has told who holds them."""
        now_us, missing = self.clock(), list[str]()
        last_us = self.health.last_read_us
        if last_us is None:
            missing.append("GPUs: not read yet")
        elif now_us - last_us > STALE_SECONDS * US_PER_SECOND:
            missing.append(f"GPUs: not read for {(now_us - last_us) // US_PER_SECOND} s")
        told_us = self.health.last_poll_us
        if told_us is None:
            missing.append("kubelet: no allocations reported yet")
        elif now_us - told_us > STALE_SECONDS * US_PER_SECOND:
            missing.append(f"kubelet: no allocations reported for {(now_us - told_us) // US_PER_SECOND} s")
        return Readiness(tuple(missing))


async def run_agent(
    settings: AgentSettings, clock: Clock | None = None, *, started: Callable[[RunningAgent], None] | None = None
) -> None:
    """Run until cancelled; the first task to fail ends all.

    Raises: ConfigError, NvmlError or AddressTaken before anything is served; DriverChanged also later, when the driver
    was replaced and only a new process can use it.
    """
    clock = clock or steady_clock()
    policies = policy_source(settings.web_config)
    tokens = own_token(settings.token, PATH, role="--usage.token-file")
    rules = _rules(settings.config)
    books = DeviceAccounts(journal_us=settings.journal_h * US_PER_HOUR, mig_basis=rules.mig_basis)
    wanted = Wanted(rules=rules).and_names(settings.resources)
    options = ReadOptions(
        pod_of=PodOfProcess(settings.proc),
        clock=system_clock,
        interval_us=settings.interval_s * US_PER_SECOND,
        rules=rules,
    )
    async with (
        await Gpus.open(options) as gpus,
        PodResourcesClient(settings.kubelet, wanted=wanted) as kubelet,
    ):
        health = NodeHealth(version=__version__, python=sys.version.split()[0])
        health.driver, health.nvml = gpus.driver.driver, gpus.driver.nvml
        node = RunningAgent(name=settings.node, epoch=f"{clock():x}", books=books, health=health, clock=clock)
        reading = GpuLoop(gpus, books, health, clock=clock, interval_s=settings.interval_s)
        asking = KubeletLoop(kubelet, books, reading.readings, health, clock=clock, settings=settings)
        site = _site(node, reading, settings, tokens=tokens)
        async with (
            serve(site, addresses=settings.addresses, policy_source=policies) as addresses,
            asyncio.TaskGroup() as tasks,
        ):
            node.addresses = addresses
            if started:
                started(node)
            tasks.create_task(reading.run(), name="GPUs")
            tasks.create_task(asking.run(), name="kubelet")


def _rules(path: Path | None) -> Rules:
    """What weighs MIG devices, and which resources are GPUs. Raises: ConfigError."""
    if path is None:
        return Rules()
    from gputally.config.rules_file import read_rules  # noqa: PLC0415 - an agent without such a file needs no YAML

    return read_rules(path)


def _site(
    node: RunningAgent, reading: GpuLoop, settings: AgentSettings, *, tokens: Mapping[str, Callable[[], str]]
) -> Site:
    async def scrape(openmetrics: bool) -> bytes:  # noqa: FBT001 - the shape the web side asks for
        return node.exposition(reading, openmetrics=openmetrics)

    return Site(
        title=f"gputally agent of {settings.node}",
        about="Measures the GPUs of this node and their usage by container.",
        version=__version__,
        scrape=scrape,
        ready=node.ready,
        routes=(usage_route(node.report),),
        tokens=tokens,
        links=((PATH, "usage by container, for the aggregator"),),
        max_requests=settings.max_requests,
    )
