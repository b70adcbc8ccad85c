"""Agents of simulated nodes: the books and loops of real ones, on GPUs that are not."""

from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path

import pytest

from gputally.aggregator.agent_client import PullFailed, agent_client, implausible
from gputally.aggregator.settings import AgentOptions, Settings, Target
from gputally.demo import sim_agents
from gputally.demo.sim_agent import SimAgent
from gputally.demo.sim_agents import SimAgents
from gputally.model.units import GPU, US_PER_SECOND
from gputally.model.usage import UsageReport
from gputally_sim.cluster import SimCluster
from gputally_sim.control import daemons
from gputally_sim.documents import Doc
from gputally_sim.instants import HOUR_US
from gputally_sim.node.devices import Devices
from gputally_sim.node.pods import GPU as RESOURCE
from gputally_sim.node.utilisation import UTILISATION
from gputally_sim.scenarios.fleet import NodePool, gpu_node
from gputally_sim.simulation import Simulation
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.kubeconfigs import kubeconfig
from tests.fakes.until import until
from tests.unit.aggregator.conftest import NOON_US
from tests.unit.sim.world import add, furnish, pod, seconds

IDLE_W, FULL_W = 55, 400


class Lone:
    """A node and its agent, whose time passes when the test says so."""

    def __init__(self, *, gpus: int = 1, replicas: int = 1) -> None:
        self.sim = Simulation(seed=1, start_us=NOON_US)
        devices = Devices(self.sim.registry, seed=1)
        furnish(self.sim, nodes=0)
        offered = {RESOURCE: gpus * replicas}
        self.sim.registry.create("nodes", gpu_node("n", NodePool("pool", 1, gpus), offered=offered))
        self.node = devices.nodes["n"]
        self.agent = SimAgent(self.node, begin_us=NOON_US, clock=lambda: self.sim.agenda.now_us)

    async def report(self, after: float) -> UsageReport:
        """What it answers some seconds later."""
        self.sim.run_for(seconds(after))
        await self.agent.catch_up()
        report = self.agent.report()
        assert implausible(report) == ""
        return report


def using(name: str, curve: str, *, gpus: int = 1, starts: float = 0, lasts: float | None = None) -> Doc:
    lasts_us = None if lasts is None else seconds(lasts)
    doc = pod(name, gpus=gpus, starts_after_us=seconds(starts), lasts_us=lasts_us)
    doc["metadata"]["annotations"][UTILISATION] = curve
    return doc


def used(report: UsageReport) -> dict[str, int]:
    """µs·µGPU by pod."""
    return by_pod(report, "used")


def by_pod(report: UsageReport, amount: str) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for assignment in report.assignments:
        sums[assignment.pod] += sum(getattr(hour, amount) for hour in assignment.hours)
    return dict(sums)


async def test_an_idle_node_is_measured_and_its_energy_is_nobodys() -> None:
    report = await Lone(gpus=2).report(after=100)

    assert (report.node, report.assignments, len(report.gpus)) == ("n", (), 2)
    assert report.watermark_us == report.now_us == report.allocations_us == NOON_US + seconds(100) - 1
    [hour] = report.gpus[0].hours
    assert hour.unattributed == 0
    assert hour.energy == pytest.approx(100 * IDLE_W * 1000, abs=1)


async def test_what_a_pod_did_is_told_to_the_microsecond_however_seldom_one_asks() -> None:
    lone = Lone()
    add(lone.sim, using("a", "0s:0.2,10m:0.9", starts=30, lasts=5000))
    report = await lone.report(after=9000)

    [assignment] = report.assignments
    assert (assignment.until_us or 0) - assignment.since_us == seconds(5030)
    assert (assignment.namespace, assignment.container, assignment.share, assignment.resource) == (
        "team",
        "main",
        GPU,
        RESOURCE,
    )
    assert assignment.pod_uid
    assert used(report) == {"a": seconds(600) * GPU // 5 + seconds(4400) * GPU * 9 // 10}
    assert by_pod(report, "measured") == {"a": seconds(5030) * GPU}
    busy_s = 600 * 0.2 + 4400 * 0.9
    energy = (5030 * IDLE_W + busy_s * (FULL_W - IDLE_W)) * 1000
    assert by_pod(report, "energy") == pytest.approx({"a": energy}, abs=10)
    assert {gpu.source for gpu in report.gpus} == {"samples"}
    assert sum(hour.unattributed for gpu in report.gpus for hour in gpu.hours) == 0


async def test_who_shares_a_gpu_is_told_apart() -> None:
    lone = Lone(replicas=4)
    add(lone.sim, using("a", "0.8", gpus=2), using("b", "0s:0.4,20m:1"))
    report = await lone.report(after=3600)

    began_us = min(assignment.since_us for assignment in report.assignments)
    lasted_us = report.now_us - began_us
    assert {assignment.pod: assignment.share for assignment in report.assignments} == {"a": GPU // 2, "b": GPU // 4}
    expected = {
        "a": lasted_us * GPU * 8 // 20,
        "b": (seconds(1200) * GPU * 4 // 10 + (lasted_us - seconds(1200)) * GPU) // 4,
    }
    assert used(report) == pytest.approx(expected, rel=1e-9)


async def test_one_pod_after_another_on_one_gpu() -> None:
    lone = Lone()
    for index in range(20):
        add(lone.sim, using(f"p{index}", "0.5", lasts=7))
    report = await lone.report(after=3600)

    assert used(report) == {f"p{index}": seconds(7) * GPU // 2 for index in range(20)}
    spans = sorted((assignment.since_us, assignment.until_us or 0) for assignment in report.assignments)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


async def test_reports_follow_from_the_seed_and_what_was_used_not_even_from_who_asked_when() -> None:
    async def told(pauses: Sequence[float]) -> UsageReport:
        lone = Lone(gpus=4)
        for index in range(12):
            add(lone.sim, pod(f"p{index}", gpus=1 + index % 3, lasts_us=seconds(500 + 400 * index)))
        for pause in pauses[:-1]:
            await lone.report(after=pause)
        return await lone.report(after=pauses[-1])

    first, again = [await told((1000, 1000, 7000)) for _ in range(2)]
    otherwise = await told((3, 5, 333, 3500, 5159))

    assert first == again
    for amount in ("used", "measured", "burst"):
        assert by_pod(otherwise, amount) == by_pod(first, amount)
    assert by_pod(otherwise, "energy") == pytest.approx(by_pod(first, "energy"), abs=50)
    assert [assignment.since_us for assignment in otherwise.assignments] == [
        assignment.since_us for assignment in first.assignments
    ]


async def test_a_gpu_that_is_lost_is_told_of_as_such_and_comes_back() -> None:
    lone = Lone()
    add(lone.sim, using("a", "1"))
    before = await lone.report(after=600)
    lone.node.lost.add(0)
    lost = await lone.report(after=600)
    lone.node.lost.clear()
    after = await lone.report(after=600)

    assert [report.gpus[0].lost for report in (before, lost, after)] == [False, True, False]
    assert used(before) == used(lost)
    assert used(after)["a"] <= used(before)["a"] + seconds(600) * GPU


@pytest.fixture
async def cluster() -> SimCluster:
    """Slow, and not yet begun."""
    return SimCluster(seed=1, speed=10, start_us=NOON_US)


async def test_the_aggregator_finds_them_by_their_pods_and_books_what_they_tell(
    cluster: SimCluster, tmp_path: Path
) -> None:
    agents = SimAgents(cluster)
    cluster.run_scenario("s1")
    async with cluster, agents:
        settings = Settings(
            config=None,
            prices=None,
            ledger=str(tmp_path / "ledger.db"),
            zero_s=0,
            kubeconfig=kubeconfig(tmp_path / "kube", cluster.url, {"token": "any"}),
            addresses=("127.0.0.1:0",),
            agents=AgentOptions(port=agents.port, interval_s=1),
        )
        async with aggregating(settings, cluster) as (running, _):
            await until_ready(running)
            health = running.pipeline.health.agents
            await until(lambda: health.pulls.get("answered", 0) > 2 * len(agents.agents))
            nodes = {node["metadata"]["name"] for node in cluster.store.docs("nodes")}

            assert {name for name, agent in health.agents.items() if agent.reachable} == nodes == set(agents.agents)
            assert set(health.pulls) == {"answered"}


async def test_a_node_that_comes_has_an_agent_and_one_that_goes_has_none(cluster: SimCluster) -> None:
    agents = SimAgents(cluster)
    async with cluster, agents, agent_client(AgentOptions()) as client:
        furnish(cluster.simulation, nodes=1)
        await until(lambda: "n0" in agents.agents)
        target = Target("n0", f"http://127.64.0.1:{agents.port}")
        report = await client.report(target)
        cluster.registry.delete("nodes", ("", "n0"))
        await until(lambda: "n0" not in agents.agents)
        with pytest.raises(PullFailed, match="Connect"):
            await client.report(target)
        cluster.registry.create("nodes", gpu_node("n0", NodePool("pool", 1, 3), offered={RESOURCE: 3}))
        await until(lambda: "n0" in agents.agents)
        again = await client.report(Target("n0", f"http://127.64.0.2:{agents.port}"))

    assert (len(report.gpus), len(again.gpus)) == (1, 3)
    assert report.epoch != again.epoch
    assert report.now_us < again.now_us


async def test_where_they_cannot_listen_that_is_said_once(
    cluster: SimCluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (daemons, sim_agents):
        monkeypatch.setattr(module, "ADDRESSES", IPv4Address("192.0.2.0"))
    agents = SimAgents(cluster)
    furnish(cluster.simulation, nodes=3)
    cluster.simulation.run_for(0)
    async with cluster, agents:
        assert agents.port

    assert agents.agents == {}
    [said] = [record.message for record in caplog.records if record.name == sim_agents.__name__]
    assert said == (
        "simulated agents: cannot listen on 127.64.*: Cannot assign requested address; "
        "without them, usage is not measured"
    )


async def test_the_longer_a_second_is_the_longer_what_ended_is_told() -> None:
    slow, fast = (SimAgents(SimCluster(speed=speed, start_us=NOON_US)) for speed in (1, 100_000))

    assert slow._journal_us() == 6 * HOUR_US
    assert fast._journal_us() == 30 * 100_000 * US_PER_SECOND
