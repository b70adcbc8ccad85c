"""One run of the honest workload, alone or beside the hostile tenant, before one aggregator for each tenant rule."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from labs.hostile import audit, doorman, honest
from labs.hostile.audit import Requests
from labs.hostile.ground import FOREIGN_NODE, HOSTILE, Ground
from labs.hostile.honest import PROBE, Life, team_of
from labs.hostile.meter import JobWatch, Latency, Meter, Yardstick
from labs.hostile.tenant import Target
from tests.behaviour.product import Product, Samples
from tests.behaviour.recorder import Record, Recorder, is_terminal, until
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane

BY_NAMESPACE = """
kind: Configuration
tenants:
  rules:
    - from: namespace-label
      key: team
limits: {{tenants: {limit}}}
"""
BY_POD_LABEL = """
kind: Configuration
tenants:
  rules:
    - from: pod-label
      key: team
    - from: namespace-label
      key: team
limits: {{tenants: {limit}}}
"""
CONFIGURATIONS = {"by-namespace": BY_NAMESPACE, "by-pod-label": BY_POD_LABEL}
OPEN = "SELECT DISTINCT pod_uid FROM current_segments WHERE end_us IS NULL"
RESTART_AT = 0.75
"""The part of the time after which the aggregators are started anew."""
LINGERS_S = 60
"""How much longer than the honest tenants the hostile one goes on, if it has not done all by then."""
CATCHES_UP_S = 240
"""How long a control plane on a busy machine may take for what is left."""
READY_WITHIN_S = 240
"""Then a run is given up; what is asked of the start is in the report."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How long a run is and how hard the hostile tenant tries."""

    seed: int
    lasts_s: float
    scale: float
    per_second: float
    tenants: int
    """The limit of the label."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one aggregator did and said in a run."""

    meter: Meter
    jobs: JobWatch
    samples: Samples
    """Of the last scrape, when all honest pods had ended."""
    requests: Requests
    ready_s: float
    """How long the second start took."""
    log: str
    ledger_bytes: int


@dataclass
class Run:
    """All that is left of it."""

    plan: list[Life]
    record: Record
    yardstick: Yardstick
    seen: dict[str, Seen] = field(default_factory=dict)
    told: list[dict[str, Any]] = field(default_factory=list)
    """What the hostile tenant says."""
    early_at_s: float | None = None
    """When its early attacks were done, from the first honest pod on."""


async def run(scratch: Path, size: Size, *, hostile: bool) -> Run:
    """From an empty cluster until all honest pods have ended and been accounted."""
    async with (
        ControlPlane(scratch, api_server_args=audit.arguments(scratch)) as plane,
        Api(plane.url, plane.token("admin"), plane.ca_file) as api,
    ):
        ground = Ground(plane, api, scratch)
        await ground.furnish()
        async with Recorder(api, fieldSelector=f"metadata.namespace!={HOSTILE}") as record:
            found = Run(honest.lives(seed=size.seed, lasts_s=size.lasts_s), record, Yardstick(api))
            async with AsyncExitStack() as stack:
                products = {
                    name: await stack.enter_async_context(started(ground, name, text.format(limit=size.tenants)))
                    for name, text in CONFIGURATIONS.items()
                }
                await _load(ground, size, found, products, hostile=hostile)
            return found


@asynccontextmanager
async def started(ground: Ground, name: str, configuration: str) -> AsyncIterator[Product]:
    product = await ground.product(name, configuration)
    try:
        await product.start()
        await product.scrape()  # opens its books
        yield product
    finally:
        await product.kill()


async def _load(ground: Ground, size: Size, found: Run, products: dict[str, Product], *, hostile: bool) -> None:
    """Let everybody act, and look at it."""
    latency = {name: Latency(found.record, team_of(PROBE), PROBE) for name in products}
    meters = {name: Meter(product, latency[name]) for name, product in products.items()}
    jobs = {name: JobWatch(product, found.record, expected_jobs(found.plan)) for name, product in products.items()}
    looks = [*(meter.run() for meter in meters.values()), *(watch.run() for watch in jobs.values())]
    looks.append(found.yardstick.run())
    watching = [asyncio.create_task(look) for look in looks]
    attack = asyncio.create_task(_attack(ground, size, found)) if hostile else None
    acting = asyncio.create_task(honest.live(ground.api, found.plan))
    await asyncio.sleep(size.lasts_s * RESTART_AT)
    ready_s = await asyncio.gather(*(_restart(product, meters[name]) for name, product in products.items()))
    await acting
    await _until_over(found)
    if attack:
        await attack
    for (name, product), started_in_s in zip(products.items(), ready_s, strict=True):
        await product.query_until(OPEN, lambda rows: not {uid for (uid,) in rows} & found.record.forms.keys())
        jobs[name].look()
        await product.scrape()
        samples = await product.scrape()
        meters[name].look()
        await product.stop()  # it leaves one file behind
        found.seen[name] = Seen(
            meter=meters[name],
            jobs=jobs[name],
            samples=samples,
            requests=audit.requests(ground.scratch, name),
            ready_s=started_in_s,
            log=product.log.read_text(),
            ledger_bytes=meters[name].ledger_bytes(),
        )
    for task in watching:
        end(task)


async def _restart(product: Product, meter: Meter) -> float:
    """As an upgrade does it; the seconds from the launch until it is ready."""
    meter.look()
    assert product.is_alive, product.log.read_text()
    await product.stop()
    began_s = time.monotonic()
    await _come_up(product)
    return time.monotonic() - began_s


async def _come_up(product: Product) -> None:
    """As by a kubelet: what ends by itself, as when the API server was too busy to answer, is started again."""
    async with asyncio.timeout(READY_WITHIN_S):
        while not await product.is_ready():
            if not product.is_alive:
                await product.launch()
            await asyncio.sleep(0.05)


async def _attack(ground: Ground, size: Size, found: Run) -> None:
    """The hostile tenant, a process of its own, which nothing but its token gives any rights; and who refuses it."""
    target = Target(namespace=HOSTILE, own_pool=HOSTILE, foreign_node=FOREIGN_NODE, foreign_namespace=honest.TENANTS[0])
    plan = {
        "url": ground.plane.url,
        "token": await ground.token(HOSTILE, HOSTILE),
        "ca_file": str(ground.plane.ca_file),
        "target": asdict(target),
        "scale": size.scale,
        "per_second": size.per_second,
        "lasts_s": size.lasts_s + LINGERS_S,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "labs.hostile"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(plan).encode())
    process.stdin.close()
    began_s = time.monotonic()
    refusing = asyncio.create_task(doorman.refuse(ground.api, HOSTILE, FOREIGN_NODE))
    try:
        async for line in process.stdout:
            found.told.append(json.loads(line))
            found.early_at_s = found.early_at_s or time.monotonic() - began_s
        assert await process.wait() == 0, "the hostile tenant failed"
    finally:
        end(refusing)
        if process.returncode is None:
            process.kill()
        await process.wait()


def end(task: asyncio.Task[None]) -> None:
    """Stop what would go on for ever; raises what has ended it before."""
    if task.done():
        task.result()
    task.cancel()


def expected_jobs(plan: Sequence[Life]) -> dict[tuple[str, str], tuple[str, str]]:
    """By namespace and the beginning of the pod's name."""
    return {(life.tenant, f"{life.kind}-{life.number}"): life.job for life in plan}


async def _until_over(found: Run) -> None:
    """Until all pods of the plan have come and ended."""
    expected = sum(life.pods for life in found.plan)
    forms = found.record.forms
    try:
        await until(lambda: len(forms) >= expected and not unended(found.record), within=CATCHES_UP_S)
    except TimeoutError:
        raise AssertionError(
            f"{len(forms)} of {expected} honest pods came, of which go on: {unended(found.record)}"
        ) from None


def unended(record: Record) -> list[str]:
    """Pods, with what was told of them last."""
    last = [forms[-1][1] for forms in record.forms.values()]
    return [f"{pod['metadata']['name']} {json.dumps(pod['status'])}" for pod in last if not is_terminal(pod)]
