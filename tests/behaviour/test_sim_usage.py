"""Compares what the aggregator accounts from the agents of a simulated cluster with what its pods did."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from gputally.accounting.totals.total import Total
from gputally.aggregator.aggregator import RunningAggregator
from gputally.aggregator.settings import AgentOptions, Settings
from gputally.demo.sim_agents import SimAgents
from gputally.model.kube.kinds import Kind
from gputally.model.units import GPU
from gputally_sim.api.store import Change, Verb
from gputally_sim.cluster import SimCluster
from gputally_sim.documents import Doc, uid_of
from gputally_sim.instants import HOUR_US
from gputally_sim.node.pods import effective_requests, is_terminal, node_of
from gputally_sim.node.utilisation import FULL, Curve, curve_of
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.command import Samples, scrape, sum_of
from tests.fakes.kubeconfigs import kubeconfig
from tests.fakes.until import until

SEED = 3
MONDAY_SIX_US = 1_780_898_400 * 1_000_000
HOURS = 4
BEGINNING, SPEED = 60, 7200
"""Slow until each agent was pulled once: usage of pods that end before is unallocated."""
GPU_RESOURCE = "nvidia.com/gpu"
POWER = {"NVIDIA-A100-SXM4-80GB": (55, 400), "NVIDIA-H100-80GB-HBM3": (70, 700)}
"""Idle and maximum power (W)."""

A = TypeVar("A", int, float)
Group = tuple[str, str]
"""Tier and tenant."""


@dataclass
class Life:
    """A pod with GPUs from its binding to the end of its containers (µs)."""

    group: Group
    gpus: int
    model: str
    curve: Curve
    bound_us: int
    started_us: int | None = None
    ended_us: int | None = None
    is_preempted: bool = False

    def held(self, now_us: int) -> int:
        """µs·µGPU."""
        return self.gpus * GPU * (self._until(now_us) - self.bound_us)

    def used(self, now_us: int) -> int:
        """µs·µGPU."""
        return self.gpus * self.curve.integral(self._ran(now_us)) * GPU // FULL

    def energy(self, now_us: int) -> float:
        """Joules: the idle power, plus the power above idle while the GPUs are busy."""
        idle, full = POWER[self.model]
        idle_energy = idle * (self._until(now_us) - self.bound_us) / 1e6
        return self.gpus * (idle_energy + (full - idle) * self.curve.integral(self._ran(now_us)) / FULL / 1e6)

    def _until(self, now_us: int) -> int:
        return now_us if self.ended_us is None else self.ended_us

    def _ran(self, now_us: int) -> int:
        return 0 if self.started_us is None else self._until(now_us) - self.started_us


class Truth:
    """The lives of all pods with GPUs, as they happen."""

    def __init__(self, cluster: SimCluster) -> None:
        self.lives: dict[str, Life] = {}
        self._cluster = cluster
        cluster.store.subscribe("pods", self._observe)

    def by_group(self, amount: Callable[[Life, int], A], now_us: int) -> dict[Group, A]:
        """The sum by group, without groups that are 0."""
        sums = dict[Group, A]()
        for life in self.lives.values():
            if more := amount(life, now_us):
                sums[life.group] = sums[life.group] + more if life.group in sums else more
        return sums

    def _observe(self, change: Change) -> None:
        pod, now_us = change.now.doc, self._cluster.simulation.agenda.now_us
        life = self.lives.get(uid_of(pod)) or self._started(pod, now_us)
        if life is None or life.ended_us is not None:
            return
        life.is_preempted |= any(
            each.get("reason") == "PreemptionByScheduler" for each in pod["status"].get("conditions", [])
        )
        if change.verb is Verb.DELETED or is_terminal(pod):
            life.ended_us = now_us
        elif pod["status"]["phase"] == "Running" and life.started_us is None:
            life.started_us = now_us

    def _started(self, pod: Doc, now_us: int) -> Life | None:
        gpus = effective_requests(pod["spec"]).get(GPU_RESOURCE, 0)
        if not gpus or not node_of(pod) or is_terminal(pod):
            return None
        node = self._cluster.registry.read("nodes", ("", node_of(pod))).doc
        group = pod["spec"].get("priorityClassName") or "none", pod["metadata"]["namespace"]
        model = node["metadata"]["labels"]["nvidia.com/gpu.product"]
        life = self.lives[uid_of(pod)] = Life(group, gpus, model, curve_of(pod, SEED), now_us)
        return life


@dataclass
class Outcome:
    """The state when the simulation was stopped at `now_us`."""

    now_us: int
    truth: Truth
    running: RunningAggregator
    samples: Samples

    def total(self, total: Total) -> Counter[Group]:
        """The sum by group, without groups that are 0."""
        sums: Counter[Group] = Counter()
        for labels, series in self.running.pipeline.fleet.totals.truth(total):
            sums[labels[0], labels[1]] += series.at(self.now_us)
        return +sums


@pytest.mark.parametrize("scenario", ["s1", "s2"])
async def test_usage_of_simulated_pods_is_accounted_to_the_microsecond(scenario: str, tmp_path: Path) -> None:
    outcome = await ran(scenario, tmp_path)

    measured_us = outcome.now_us - 1  # agents lag by 1 µs
    truth = outcome.truth
    assert outcome.total(Total.MEASURED) == truth.by_group(Life.held, measured_us)
    assert outcome.total(Total.USED) == truth.by_group(Life.used, measured_us)
    joules = {group: energy / 1000 for group, energy in outcome.total(Total.ENERGY).items()}
    assert joules == pytest.approx(truth.by_group(Life.energy, measured_us), abs=1)
    report(scenario, outcome)
    assert_sound(outcome)


def assert_sound(outcome: Outcome) -> None:
    """No usage exceeds the allocation, is unallocated or unmatched, and both sides agree on allocations."""
    samples, truth = outcome.samples, outcome.truth
    allocated, measured = outcome.total(Total.ALLOCATED), outcome.total(Total.MEASURED)
    a_second_each = Counter[Group]()  # API times, also ends, are whole seconds
    for life in truth.lives.values():
        a_second_each[life.group] += life.gpus * GPU * 10**6
    assert {group for group in measured if measured[group] > allocated[group] + a_second_each[group]} == set()
    assert sum_of(samples, "gputally_unallocated_used_gpu_seconds_total") == 0
    assert sum_of(samples, "gputally_unmatched_usage_gpu_seconds_total") == 0
    assert sum_of(samples, "gputally_usage_faults_total") == 0
    assert sum_of(samples, "gputally_allocation_difference_gpus") == 0
    assert sum_of(samples, "gputally_unallocated_energy_joules_total") > 0


async def ran(scenario: str, scratch: Path) -> Outcome:
    """Run some hours of the scenario; returns the state once all updates and reports are accounted."""
    cluster = SimCluster(seed=SEED, speed=BEGINNING, start_us=MONDAY_SIX_US)
    agents, truth = SimAgents(cluster), Truth(cluster)
    async with cluster, agents, aggregating(settings(cluster, agents, scratch), cluster) as (running, url):
        await until_ready(running)
        cluster.run_scenario(scenario)
        await until(
            lambda: agents.agents and len(running.pipeline.health.agents.agents) == len(cluster.store.docs("nodes"))
        )
        pace(cluster, SPEED)
        await cluster.clock.sleep_until(MONDAY_SIX_US + HOURS * HOUR_US)
        now_us = await stopped(cluster)
        await caught_up(cluster, agents, running)
        await scrape(url)
        return Outcome(now_us, truth, running, await scrape(url))


def settings(cluster: SimCluster, agents: SimAgents, scratch: Path) -> Settings:
    """Requires both to be entered: they get their ports then."""
    return Settings(
        config=None,
        prices=None,
        ledger=str(scratch / "ledger.db"),
        zero_s=0,
        kubeconfig=kubeconfig(scratch / "kube", cluster.url, {"token": "any"}),
        addresses=("127.0.0.1:0",),
        agents=AgentOptions(port=agents.port, interval_s=1),
    )


async def stopped(cluster: SimCluster) -> int:
    """Stop the simulation; returns its time."""
    now_us = pace(cluster, 1e-9)
    await until(lambda: (cluster.simulation.agenda.next_us or now_us + 1) > now_us)
    return now_us


def pace(cluster: SimCluster, speed: float) -> int:
    """Set the speed of the simulation; returns its current time."""
    clock = cluster.clock
    clock.start_us, clock._origin_ns = clock.now_us(), time.monotonic_ns()
    clock.speed = speed
    cluster._wake.set()
    return clock.start_us


async def caught_up(cluster: SimCluster, agents: SimAgents, running: RunningAggregator) -> None:
    """Wait until all pod events are accounted, and each agent's report was pulled several times since."""
    last = cluster.store.version_of("pods")
    await until(lambda: int(running.pipeline.fleet.coverage.resumes[Kind.PODS].version) >= last)
    pulls = running.pipeline.health.agents.pulls
    enough = pulls.get("answered", 0) + 3 * len(agents.agents)
    await until(lambda: pulls.get("answered", 0) >= enough)
    await asyncio.sleep(0.2)  # until the last pulled reports are accounted


def report(scenario: str, outcome: Outcome) -> None:
    """Print the usage by group."""
    for group, used in sorted(outcome.total(Total.USED).items()):
        measured = outcome.total(Total.MEASURED)[group]
        print(f"{scenario} {'/'.join(group)}: {used / 1e12:.6f} of {measured / 1e12:.6f} GPU-s used")  # noqa: T201 - with -s
