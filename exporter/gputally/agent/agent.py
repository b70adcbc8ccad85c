"""The node agent: reads the GPU driver and the kubelet, and serves metrics and usage. This file only connects parts."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gputally import __version__
from gputally.agent.agent_settings import AgentSettings
from gputally.agent.gpu_loop import GpuLoop
from gputally.agent.kubelet_loop import KubeletLoop
from gputally.agent.responses import PATH, exposition, node_view, usage_route
from gputally.devices.kubelet.device_assignments import Wanted
from gputally.devices.kubelet.pod_resources_client import PodResourcesClient
from gputally.devices.kubelet.pod_uids import PodOfProcess
from gputally.devices.nvml.gpu_reader import ReadOptions
from gputally.devices.nvml.gpus import Gpus
from gputally.exposition.process_metrics import process_registry, registry_text
from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.health import NodeHealth
from gputally.model.rules import Rules
from gputally.model.units import US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import UsageCursor, UsageReport
from gputally.process.clock import Clock, steady_clock, system_clock
from gputally.web.access_policy import own_token, policy_source
from gputally.web.server import METRICS_PATH, Readiness, Site, serve

if TYPE_CHECKING:
    from gputally.process.addresses import Address

STALE_SECONDS: Final = 30.0
"""The agent is not ready if the last GPU reading or the last successful kubelet poll is older than this."""


class RunningAgent:
    """A running agent: its accounting and health, and the addresses that it listens on."""

    def __init__(self, *, name: str, epoch: str, accounts: DeviceAccounts, health: NodeHealth, clock: Clock) -> None:
        self.name = name
        self.epoch = epoch
        self.accounts = accounts
        self.health = health
        self.addresses: tuple[Address, ...] = ()
        self.clock = clock
        self._registry = process_registry()

    def report(self, cursor: UsageCursor | None = None) -> UsageReport:
        """The current response of `/v1/usage`; with a `cursor`, what changed since that report."""
        return self.accounts.report(self.clock(), self.name, self.epoch, cursor=cursor)

    def exposition(self, gpu_loop: GpuLoop, *, openmetrics: bool) -> bytes:
        """The current response of `/metrics`."""
        view = node_view(gpu_loop, self.accounts, self.health, now_us=self.clock())
        return exposition(view, openmetrics=openmetrics, more=registry_text(self._registry, openmetrics=openmetrics))

    def ready(self) -> Readiness:
        """Ready while GPU readings and kubelet polls succeed."""
        now_us, missing = self.clock(), list[str]()
        last_us = self.health.last_read_us
        if last_us is None:
            missing.append("GPUs: not read yet")
        elif now_us - last_us > STALE_SECONDS * US_PER_SECOND:
            missing.append(f"GPUs: not read for {(now_us - last_us) // US_PER_SECOND} s")
        last_us = self.health.last_poll_us
        if last_us is None:
            missing.append("kubelet: no allocations reported yet")
        elif now_us - last_us > STALE_SECONDS * US_PER_SECOND:
            missing.append(f"kubelet: no allocations reported for {(now_us - last_us) // US_PER_SECOND} s")
        return Readiness(tuple(missing))


async def run_agent(
    settings: AgentSettings, clock: Clock | None = None, *, started: Callable[[RunningAgent], None] | None = None
) -> None:
    """Run until cancelled; if one task fails, all stop.

    Raises: ConfigError, NvmlError or AddressTaken at the start; DriverChanged also later, if the driver was replaced
    and only a new process can use it.
    """
    clock = clock or steady_clock()
    policies = policy_source(settings.web_config)
    tokens = own_token(settings.token, PATH, role="--usage.token-file")
    rules = _rules(settings.config)
    accounts = DeviceAccounts(journal_us=settings.journal_h * US_PER_HOUR, mig_basis=rules.mig_basis)
    options = ReadOptions(
        pod_of=PodOfProcess(settings.proc),
        clock=system_clock,
        interval_us=settings.interval_s * US_PER_SECOND,
        rules=rules,
    )
    async with (
        await Gpus.open(options) as gpus,
        PodResourcesClient(settings.kubelet, wanted=Wanted(rules=rules).and_names(settings.resources)) as kubelet,
    ):
        health = NodeHealth(version=__version__, python=sys.version.split()[0])
        health.certificate = lambda: policies().expires_s
        health.driver, health.nvml = gpus.driver.driver, gpus.driver.nvml
        node = RunningAgent(name=settings.node, epoch=f"{clock():x}", accounts=accounts, health=health, clock=clock)
        gpu_loop = GpuLoop(gpus, accounts, health, clock=clock, interval_s=settings.interval_s)
        kubelet_loop = KubeletLoop(kubelet, accounts, gpu_loop.readings, health, clock=clock, settings=settings)
        site = _site(node, gpu_loop, settings, tokens=tokens)
        async with (
            serve(site, addresses=settings.addresses, policy_source=policies) as addresses,
            asyncio.TaskGroup() as tasks,
        ):
            node.addresses = addresses
            if started:
                started(node)
            tasks.create_task(gpu_loop.run(), name="GPUs")
            tasks.create_task(kubelet_loop.run(), name="kubelet")


def _rules(path: Path | None) -> Rules:
    """The weights of MIG devices, and the names of GPU resources. Raises: ConfigError."""
    if path is None:
        return Rules()
    from gputally.config.rules_file import read_rules  # noqa: PLC0415 - no YAML without a configuration file

    return read_rules(path)


def _site(
    node: RunningAgent, gpu_loop: GpuLoop, settings: AgentSettings, *, tokens: Mapping[str, Callable[[], str]]
) -> Site:
    async def scrape(openmetrics: bool) -> bytes:  # noqa: FBT001 - the signature that Site requires
        return node.exposition(gpu_loop, openmetrics=openmetrics)

    return Site(
        title=f"gputally agent of {settings.node}",
        about="Measures the GPUs of this node and their usage by container.",
        version=__version__,
        scrapes={METRICS_PATH: scrape},
        ready=node.ready,
        routes=(usage_route(node.report),),
        tokens=tokens,
        links=((PATH, "usage by container, for the aggregator"),),
        max_requests=settings.max_requests,
    )
