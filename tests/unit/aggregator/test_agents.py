"""The aggregator in this process, on the simulated cluster, with an agent on one of its nodes."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gputally.aggregator.aggregator import aggregate
from gputally.aggregator.settings import AgentOptions, Settings, Target
from gputally.errors import ConfigError
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.kube.kinds import Kind
from gputally.model.units import GPU, GPU_SECOND, US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import AssignmentReport, GpuHour, GpuReport, Hour, UsageReport
from gputally_sim.cluster import SimCluster
from tests.fakes.agent import FakeAgent, serving
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.command import PATIENCE_SECONDS, Samples, fallen, scrape, sum_of
from tests.fakes.until import until
from tests.unit.aggregator.conftest import NOON_US

DEVICE = "GPU-4d5c"
ENERGY_MJ = 4321


@pytest.fixture
def settings(tmp_path: Path, kubeconfig_file: str) -> Settings:
    return Settings(
        config=None,
        prices=None,
        ledger=str(tmp_path / "ledger.db"),
        zero_s=0,
        kubeconfig=kubeconfig_file,
        addresses=("127.0.0.1:0",),
        agents=AgentOptions(interval_s=1),
    )


class Device:
    """A GPU of a simulated node, held by a pod that uses half of it."""

    def __init__(self, cluster: SimCluster) -> None:
        self._now_us = cluster.clock.now_us
        self._began_us = cluster.clock.now_us()
        pods = cluster.store.docs("pods")
        self.pod: dict[str, Any] = next(pod for pod in pods if pod["status"].get("phase") == "Running")
        self.node: str = self.pod["spec"]["nodeName"]

    def report(self) -> UsageReport:
        """As the agent would tell it now."""
        now_us = self._now_us()
        energy = GpuHour(start_us=now_us - now_us % US_PER_HOUR, energy=ENERGY_MJ)
        gpu = GpuReport(uuid=DEVICE, model="A100", source="samples", watermark_us=now_us, hours=(energy,))
        return UsageReport(
            version=1,
            epoch="e1",
            node=self.node,
            now_us=now_us,
            watermark_us=now_us,
            allocations_us=now_us,
            gpus=(gpu,),
            assignments=(self._assignment(now_us),),
        )

    def _assignment(self, now_us: int) -> AssignmentReport:
        meta = self.pod["metadata"]
        return AssignmentReport(
            device=DEVICE,
            gpu=DEVICE,
            namespace=meta["namespace"],
            pod=meta["name"],
            container=self.pod["spec"]["containers"][0]["name"],
            resource="nvidia.com/gpu",
            share=GPU,
            since_us=self._began_us,
            seen_us=now_us,
            hours=tuple(self._hours(now_us)),
        )

    def _hours(self, now_us: int) -> list[Hour]:
        first_us = self._began_us - self._began_us % US_PER_HOUR
        return [self._hour(start_us, now_us) for start_us in range(first_us, now_us + 1, US_PER_HOUR)]

    def _hour(self, start_us: int, now_us: int) -> Hour:
        from_us, to_us = max(start_us, self._began_us), min(start_us + US_PER_HOUR, now_us)
        measured = (to_us - from_us) * GPU
        return Hour(start_us=start_us, from_us=from_us, to_us=to_us, measured=measured, used=measured // 2)


def used(samples: Samples) -> float:
    return sum_of(samples, "gputally_used_gpu_seconds_total")


async def until_measured(url: str) -> Samples:
    """The first scrape that shows what was used."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not used(samples := await scrape(url)):  # noqa: ASYNC110 - what is waited for sends no signal
            await asyncio.sleep(0.02)
    return samples


async def test_what_an_agent_that_is_named_has_measured_is_in_the_scrape_and_in_the_ledger(
    settings: Settings, cluster: SimCluster
) -> None:
    device = Device(cluster)
    async with serving(FakeAgent(device.report)) as agent:
        named = replace(settings.agents, urls=(Target(device.node, agent.url),))
        async with aggregating(replace(settings, agents=named), cluster) as (running, url):
            await until_ready(running)
            samples = await until_measured(url)

    assert sum_of(samples, "gputally_measured_gpu_seconds_total") == pytest.approx(2 * used(samples))
    assert 0 < sum_of(samples, "gputally_unallocated_energy_joules_total") <= ENERGY_MJ / 1000
    assert sum_of(samples, "gputally_unmatched_usage_gpu_seconds_total") == 0
    assert samples['gputally_agents{state="reachable"}'] == 1
    assert samples["gputally_agents_watermark_timestamp_seconds"] > NOON_US / US_PER_SECOND
    with SqliteLedger(Path(settings.ledger)) as ledger:
        rows = ledger.saved(now_us=0).assignment_usage
    assert {row.assignment.pod_uid for row in rows} == {device.pod["metadata"]["uid"]}
    assert sum(row.hour.used for row in rows) >= used(samples) * GPU_SECOND


async def test_an_agent_is_found_by_its_labels_and_is_still_known_after_a_restart(
    settings: Settings, cluster: SimCluster
) -> None:
    device = Device(cluster)
    async with serving(FakeAgent(device.report)) as agent:
        found = replace(settings, agents=replace(settings.agents, port=int(agent.url.rpartition(":")[2])))
        async with aggregating(found, cluster) as (running, url):
            await until_ready(running)
            run_agent(cluster, device.node)
            before = await until_measured(url)

        async with aggregating(found, cluster) as (running, url):
            await until_ready(running)
            pods = next(watch for watch in running.pipeline.health.watches if watch.kind is Kind.PODS)
            assert pods.listings == 0, "the watch of pods was not resumed"
            await until(lambda: running.pipeline.health.agents.pulls.get("answered", 0) > 1)
            after = await scrape(url)

    assert fallen(before, after) == []
    assert used(before) < used(after) < (cluster.clock.now_us() - NOON_US) / US_PER_SECOND


def run_agent(cluster: SimCluster, node: str) -> None:
    """An agent's pod on the node, as its kubelet reports it."""
    labels = {"app.kubernetes.io/name": "gputally", "app.kubernetes.io/component": "agent"}
    spec = {"nodeName": node, "containers": [{"name": "agent", "image": "gputally"}]}
    cluster.registry.create("namespaces", {"metadata": {"name": "gputally"}})
    cluster.registry.create("pods", {"metadata": {"name": "agent", "labels": labels}, "spec": spec}, "gputally")
    status = {"phase": "Running", "podIP": "127.0.0.1"}
    cluster.registry.patch("pods", ("gputally", "agent"), {"status": status}, status=True)


async def test_without_agents_nothing_is_missing(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        samples = await scrape(url)

    assert samples["gputally_unmatched_usage_gpu_seconds_total"] == 0
    assert sum_of(samples, "gputally_agents") == sum_of(samples, "gputally_agent_pulls_total") == 0
    assert not [name for name in samples if name.startswith(("gputally_used", "gputally_agents_watermark"))]


async def test_a_token_that_cannot_be_read_is_told_before_anything_is_served(
    settings: Settings, cluster: SimCluster, tmp_path: Path
) -> None:
    missing = replace(settings.agents, token=tmp_path / "token")

    with pytest.raises(ConfigError, match=r"token: --agents.token-file: cannot be used: No such file"):
        await aggregate(replace(settings, agents=missing), cluster.clock.now_us)
