"""gputally and a Prometheus with kube-state-metrics observe the same pods; afterwards, the import is compared."""

import asyncio
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from gputally.ledger.open import reading_once
from gputally.ledger.records import Window
from gputally.model.units import GPU_SECOND
from gputally.reports.query import ReportQuery
from gputally.reports.unbilled import read_sampled
from hack.build import KUBE_STATE_METRICS
from tests.behaviour.product import Product
from tests.cluster.api import Api, Refused
from tests.cluster.component import Component
from tests.cluster.control_plane import LOOPBACK, ControlPlane, free_ports
from tests.cluster.manifests import POOL, Json, conduct, gpu_node, gpu_pod, path, priority_class
from tests.fakes.kube_state_page import kube_state_page
from tests.prometheus.server import Configuration, PrometheusServer, scrape

TEAMS: Final = ("red", "green", "blue")
NODES: Final = 4
USUAL, SLOW = {"pods": "random"}, {"pods": "slow"}
"""Labels of nodes: the pods that stop slowly have one of their own."""
CONFIGURATION: Final = """
kind: Configuration
tenants:
  rules:
    - {from: pod-label, key: team}
"""
ALLOWED: Final = "pods=[team],nodes=[nvidia.com/gpu.product]"


class Setting(Struct, frozen=True, kw_only=True):
    """How long the scene lasts, how often Prometheus scrapes, and whether it scrapes kube-state-metrics or a page."""

    seconds: float
    interval_s: float
    is_real: bool


class Tenant(Struct, frozen=True, kw_only=True):
    """GPU-time of a tenant, in µs·µGPU. Of pods that no scrape showed, `unseen` is that of the ledger."""

    live: int
    imported: int
    stated: int
    unseen: int

    @property
    def observed(self) -> int:
        """What the import lacks, beside the pods that no scrape showed; below 0 for what it has in addition."""
        return self.live - self.imported - self.unseen

    def __str__(self) -> str:
        live, imported, stated, unseen, observed = (
            f"{each / GPU_SECOND:9.2f}" for each in (self.live, self.imported, self.stated, self.unseen, self.observed)
        )
        return f"{live} live, {imported} imported, {observed} error, {stated} stated, {unseen} in pods never scraped"


class Comparison(Struct, frozen=True, kw_only=True):
    """Both ledgers in the window of the import."""

    tenants: Mapping[str, Tenant]
    pods: int
    unseen_s: Sequence[float]
    """GPU-seconds of each pod that no scrape showed."""
    outcomes: Mapping[str, int]
    sampled: int
    """Pods whose end rests on samples."""

    def report(self) -> str:
        """GPU-seconds by tenant."""
        lines = [f"{name:8}{tenant}" for name, tenant in sorted(self.tenants.items())]
        about = f"{self.pods} pods, {self.sampled} end between two scrapes, {len(self.unseen_s)} not scraped"
        return "\n".join(["", about, f"outcomes {dict(self.outcomes)}", "GPU-seconds by tenant:", *lines, ""])


@asynccontextmanager
async def exporting(control_plane: ControlPlane, api: Api, *, is_real: bool) -> AsyncIterator[str]:
    """The URL of kube-state-metrics, or of a page with the same series."""
    if not is_real:
        async with kube_state_page(api) as url:
            yield url
        return
    ports = free_ports(2)
    command = [
        *(str(KUBE_STATE_METRICS.path), f"--kubeconfig={control_plane.kubeconfig('admin')}"),
        *("--resources=pods,nodes,namespaces,replicasets", f"--metric-labels-allowlist={ALLOWED}"),
        *(f"--host={LOOPBACK}", f"--port={ports[0]}", f"--telemetry-host={LOOPBACK}", f"--telemetry-port={ports[1]}"),
    ]
    url = f"http://{LOOPBACK}:{ports[0]}"
    server = Component(command, log=control_plane.scratch / "kube-state-metrics.log", health=f"{url}/healthz")
    server.launch()
    try:
        await server.ready()
        yield url
    finally:
        server.kill()


class Scene:
    """A pool of GPU nodes on which random pods start, complete, fail, are deleted and preempted."""

    def __init__(self, api: Api, place: str, *, seed: int) -> None:
        self._api = api
        self._place = place
        self._chance = Random(seed)
        self._deleting: list[asyncio.Task[None]] = []

    async def furnish(self) -> None:
        """Nodes and tiers."""
        for number in range(NODES):
            await self._api.create(gpu_node(f"{self._place}-{number}", gpus=4, pool=self._place, labels=USUAL))
        await self._api.create(gpu_node(f"{self._place}-slow", gpus=2, pool=self._place, labels=SLOW))
        for name, value in (("low", 10), ("high", 1000)):
            await self._api.create(priority_class(f"{self._place}-{name}", value))

    async def play(self, seconds: float, *, pace: float) -> None:
        """Create pods for so long; they live for about eight times the `pace` (s). Some still run in the end."""
        loop = asyncio.get_running_loop()
        until, number = loop.time() + seconds, 0
        async with asyncio.TaskGroup() as deletions:
            deletions.create_task(self._slow_ends(6 * pace))
            while loop.time() < until:
                number += 1
                await self._pod(number, pace, deletions)
                await asyncio.sleep(self._chance.uniform(0.5, 1.5) * pace)
            for task in self._deleting:
                task.cancel()

    async def _pod(self, number: int, pace: float, deletions: asyncio.TaskGroup) -> None:
        chance = self._chance
        ends_itself = chance.random() < 0.5
        life_s = chance.randint(4, 12) * pace
        pod = gpu_pod(
            f"pod-{number}",
            self._place,
            gpus=chance.choice((1, 1, 2, 3)),
            labels={"team": chance.choice(TEAMS)},
            annotations=conduct(
                start_after=chance.choice(("", "1s")),
                run_for=f"{life_s:.0f}s" if ends_itself else "",
                exit_as=chance.choice(("", "", "Failed")),
                stop_after=chance.choice(("", "1s", "2s")),
            ),
            nodeSelector={POOL: self._place, **USUAL},
            priorityClassName=f"{self._place}-{chance.choice(('low', 'low', 'high'))}",
        )
        await self._api.create(pod)
        if not ends_itself or chance.random() < 0.3:
            after_s = life_s + (20 * pace if ends_itself else 0)
            self._deleting.append(deletions.create_task(self._deleted(path(pod), after_s)))

    async def _slow_ends(self, stop_after_s: float) -> None:
        """Delete a pod and preempt another; both take so long to stop that a scrape shows why they end."""
        victim, deleted, preemptor = (
            self._slow_pod(name, tier, stop_after_s)
            for name, tier in (("victim", "low"), ("deleted", "high"), ("preemptor", "high"))
        )
        for pod in (victim, deleted):
            await self._api.create(pod)
            await self._api.wait_for(path(pod), is_running)
        await self._api.create(preemptor)
        await self._api.delete(path(deleted))

    def _slow_pod(self, name: str, tier: str, stop_after_s: float) -> Json:
        return gpu_pod(
            name,
            self._place,
            labels={"team": TEAMS[0]},
            annotations=conduct(stop_after=f"{stop_after_s:.0f}s"),
            nodeSelector={POOL: self._place, **SLOW},
            priorityClassName=f"{self._place}-{tier}",
        )

    async def _deleted(self, pod: str, after_s: float) -> None:
        await asyncio.sleep(after_s)
        with suppress(Refused):  # it was preempted
            await self._api.delete(pod, grace_seconds=self._chance.choice((None, None, 0)))


def is_running(pod: Json | None) -> bool:
    return pod is not None and pod["status"]["phase"] == "Running"


async def observed(control_plane: ControlPlane, api: Api, place: str, scratch: Path, setting: Setting) -> Comparison:
    """Play the scene beside gputally and Prometheus, import, and compare."""
    scene, pace = Scene(api, place, seed=7), max(1.0, setting.interval_s / 2)
    await scene.furnish()
    product = Product(scratch, control_plane.kubeconfig("admin"), configuration=CONFIGURATION)
    await product.start()
    try:
        async with exporting(control_plane, api, is_real=setting.is_real) as url:
            configuration = Configuration(
                scrape_configs=[scrape("kube-state-metrics", url)], scrape_interval=f"{setting.interval_s:g}s"
            )
            async with PrometheusServer(scratch / "prometheus", configuration) as server:
                await server.until_up("kube-state-metrics")
                await scene.play(setting.seconds, pace=pace)
                await asyncio.sleep(2 * setting.interval_s)
                window = await asyncio.to_thread(imported, server.url, scratch)
                await until_accounted(product.ledger, window.end_us)
    finally:
        await product.stop()
    return compared(product.ledger, scratch / "history.db", window, place)


def imported(url: str, scratch: Path) -> Window:
    """Run the command; returns the accounted window."""
    ledger = str(scratch / "history.db")
    command = ["import", url, "--format", "prometheus", "--window", "2h", "--ledger", ledger]
    done = subprocess.run(
        [sys.executable, "-m", "gputally", *command, "--config.file", str(scratch / "config.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with reading_once(ledger) as reader:
        state = reader.state()
    return Window(state.accounting_start_us, state.accounted_us)


async def until_accounted(ledger: Path, until_us: int) -> None:
    """Wait until the ledger of the aggregator is complete up to that time."""
    async with asyncio.timeout(30):
        while True:
            with reading_once(str(ledger)) as reader:
                if reader.state().accounted_us >= until_us:
                    return
            await asyncio.sleep(0.2)


def compared(live: Path, history: Path, window: Window, place: str) -> Comparison:
    """GPU-time of both ledgers, and what the import states."""
    truth, found = (gpu_time_by_pod(path, window, place) for path in (live, history))
    unseen = [truth[uid] for uid in truth.keys() - found.keys()]
    with reading_once(str(history)) as reader:
        lines = read_sampled(reader, ReportQuery(window=window, by=("tenant",)))
        records = [each for each in reader.allocations(window) if each.namespace == place]
    stated = {line.labels[0]: line.most for line in lines}
    tenants = {
        team: Tenant(
            live=sum(each.get(team, 0) for each in truth.values()),
            imported=sum(each.get(team, 0) for each in found.values()),
            stated=stated.get(team, 0),
            unseen=sum(each.get(team, 0) for each in unseen),
        )
        for team in TEAMS
    }
    return Comparison(
        tenants=tenants,
        pods=len(truth),
        unseen_s=[sum(each.values()) / GPU_SECOND for each in unseen],
        outcomes=Counter(record.outcome.value for record in records),
        sampled=sum(record.gap is not None for record in records),
    )


def gpu_time_by_pod(ledger: Path, window: Window, place: str) -> dict[str, dict[str, int]]:
    """GPU-time by UID and tenant."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with reading_once(str(ledger)) as reader:
        for each in reader.segments(window):
            segment = each.segment
            if each.namespace == place:
                assert segment.end_us is not None
                found[each.pod_uid][segment.tenant] += segment.quantity * (segment.end_us - segment.start_us)
    return {uid: dict(tenants) for uid, tenants in found.items()}
