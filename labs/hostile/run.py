"""One run of the honest workload, with or without the hostile tenant; one aggregator per tenant rule observes it."""

import asyncio
import csv
import io
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from labs.hostile import audit, honest, rejecting_kubelet
from labs.hostile.audit import Requests
from labs.hostile.environment import FOREIGN_NODE, HOSTILE, Environment
from labs.hostile.honest import PROBE, Life, team_of
from labs.hostile.meter import JobWatch, Latency, Meter, Yardstick, waited_seconds
from labs.hostile.questions import Questions, flood
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
CSV_FILES: Sequence[tuple[str, Mapping[str, str]]] = (
    ("/api/v1/report", {"by": "tenant,namespace,job_kind,job,pod,node"}),
    ("/api/v1/preemptions", {}),
    ("/api/v1/preemptions", {"by": "job"}),
    ("/api/v1/waits", {"by": "tenant,namespace,pod,occupying_tenant"}),
)
"""Paths and parameters."""
OPEN = "SELECT DISTINCT pod_uid FROM current_segments WHERE end_us IS NULL"
RESTART_AT = 0.75
"""Fraction of the run after which the aggregators are restarted."""
HOSTILE_EXTRA_S = 60
"""Extra time for the hostile tenant after the honest tenants, if it is not finished."""
SETTLE_TIMEOUT_S = 240
"""Time for the control plane of a busy machine to finish all pods."""
COMPARED_WITHIN_S = 30
READY_TIMEOUT_S = 240
"""The run is aborted after this time; the report has the limit for the start."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """Duration of a run and intensity of the hostile tenant."""

    seed: int
    lasts_s: float
    scale: float
    per_second: float
    tenants: int
    """The limit of tenant label values."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Observations of one aggregator in a run."""

    meter: Meter
    jobs: JobWatch
    samples: Samples
    """Samples of the last scrape, after all honest pods ended."""
    requests: Requests
    ready_s: float
    """Duration of the second start."""
    waited_s: float
    """Time of the second start in which it was ready to run and had no processor."""
    log: str
    ledger_bytes: int
    cells: list[str]
    """Of all CSV files that the aggregator serves."""
    questions: Questions
    rejected: int
    """Questions of the hostile client that were rejected."""


@dataclass
class Run:
    """The results of a run."""

    plan: list[Life]
    record: Record
    yardstick: Yardstick
    seen: dict[str, Seen] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    """The hostile tenant's output."""
    early_at_s: float | None = None
    """End of its early attacks, in seconds since the start of the honest workload."""


async def run(scratch: Path, size: Size, *, hostile: bool) -> Run:
    """Run from an empty cluster until all honest pods have ended and are accounted."""
    async with (
        ControlPlane(scratch, api_server_args=audit.arguments(scratch)) as plane,
        Api(plane.url, plane.token("admin"), plane.ca_file) as api,
    ):
        environment = Environment(plane, api, scratch)
        await environment.furnish()
        async with Recorder(
            api, fieldSelector=f"metadata.namespace!={HOSTILE},metadata.namespace!={honest.STUCK}"
        ) as record:
            found = Run(honest.lives(seed=size.seed, lasts_s=size.lasts_s), record, Yardstick(api))
            async with AsyncExitStack() as stack:
                products = {
                    name: await stack.enter_async_context(started(environment, name, text.format(limit=size.tenants)))
                    for name, text in CONFIGURATIONS.items()
                }
                await _load(environment, size, found, products, hostile=hostile)
            return found


@asynccontextmanager
async def started(environment: Environment, name: str, configuration: str) -> AsyncIterator[Product]:
    product = await environment.product(name, configuration)
    try:
        await product.start()
        await product.scrape()  # starts the accounting
        yield product
    finally:
        await product.kill()


async def _load(
    environment: Environment, size: Size, found: Run, products: dict[str, Product], *, hostile: bool
) -> None:
    """Run both workloads and collect all measurements."""
    latency = {name: Latency(found.record, team_of(PROBE), PROBE) for name in products}
    meters = {name: Meter(product, latency[name]) for name, product in products.items()}
    jobs = {name: JobWatch(product, found.record, expected_jobs(found.plan)) for name, product in products.items()}
    polls = [*(meter.run() for meter in meters.values()), *(watch.run() for watch in jobs.values())]
    questions = {name: Questions(product) for name, product in products.items()}
    polls += [found.yardstick.run(), *(each.run() for each in questions.values())]
    watching = [asyncio.create_task(poll) for poll in polls]
    attack = asyncio.create_task(_attack(environment, size, found)) if hostile else None
    flooding = {name: asyncio.create_task(flood(product)) for name, product in products.items()} if hostile else {}
    acting = asyncio.create_task(honest.live(environment.api, found.plan))
    await asyncio.sleep(size.lasts_s * RESTART_AT)
    starts = await asyncio.gather(*(_restart(product, meters[name]) for name, product in products.items()))
    await acting
    await _until_over(found)
    if attack:
        await attack
    for (name, product), (ready_s, waited_s) in zip(products.items(), starts, strict=True):
        await product.query_until(OPEN, lambda rows: not {uid for (uid,) in rows} & found.record.forms.keys())
        jobs[name].poll()
        samples, cells = await _last_answers(product, meters[name])
        await product.stop()  # merges the ledger into one file
        found.seen[name] = Seen(
            meter=meters[name],
            jobs=jobs[name],
            samples=samples,
            requests=audit.requests(environment.scratch, name),
            ready_s=ready_s,
            waited_s=waited_s,
            log=product.log.read_text(),
            ledger_bytes=meters[name].ledger_bytes(),
            cells=cells,
            questions=questions[name],
            rejected=await flooding[name] if name in flooding else 0,
        )
    for task in watching:
        end(task)


async def _last_answers(product: Product, meter: Meter) -> tuple[Samples, list[str]]:
    """The last scrape, once gangs are compared, and the cells of all CSV files."""
    await _until_compared(meter)
    await product.scrape()
    samples = await product.scrape()
    meter.poll()
    return samples, await served_cells(product)


async def _until_compared(meter: Meter) -> None:
    """Wait for the comparison of gangs, which takes some seconds; the report says if no deadlock was found."""
    with suppress(TimeoutError):
        await until(lambda: meter.deadlocked > 0, within=COMPARED_WITHIN_S)


async def served_cells(product: Product) -> list[str]:
    """The cells of each CSV file that the aggregator serves, by the dimensions whose values tenants choose."""
    found: list[str] = []
    async with aiohttp.ClientSession() as session:
        for path, by in CSV_FILES:
            async with session.get(f"{product.url}{path}", params={"window": "all", "format": "csv", **by}) as response:
                text = await response.text()
                assert response.status == 200, text
            found += [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    return found


async def _restart(product: Product, meter: Meter) -> tuple[float, float]:
    """Restart as in an upgrade; return the seconds from launch until ready, and those of them without a processor."""
    meter.poll()
    assert product.is_alive, product.log.read_text()
    await product.stop()
    started_s = time.monotonic()
    await _come_up(product)
    return time.monotonic() - started_s, waited_seconds(product.pid)


async def _come_up(product: Product) -> None:
    """Wait until ready. Like a kubelet, restart the process if it exits, as when the API server is too busy."""
    async with asyncio.timeout(READY_TIMEOUT_S):
        while not await product.is_ready():
            if not product.is_alive:
                await product.launch()
            await asyncio.sleep(0.05)


async def _attack(environment: Environment, size: Size, found: Run) -> None:
    """Run the hostile tenant as a separate process with only its token's rights, and the rejecting kubelet."""
    target = Target(namespace=HOSTILE, own_pool=HOSTILE, foreign_node=FOREIGN_NODE, foreign_namespace=honest.TENANTS[0])
    plan = {
        "url": environment.plane.url,
        "token": await environment.token(HOSTILE, HOSTILE),
        "ca_file": str(environment.plane.ca_file),
        "target": asdict(target),
        "scale": size.scale,
        "per_second": size.per_second,
        "lasts_s": size.lasts_s + HOSTILE_EXTRA_S,
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
    started_s = time.monotonic()
    rejecting = asyncio.create_task(rejecting_kubelet.reject(environment.api, HOSTILE, FOREIGN_NODE))
    try:
        async for line in process.stdout:
            found.messages.append(json.loads(line))
            found.early_at_s = found.early_at_s or time.monotonic() - started_s
        assert await process.wait() == 0, "the hostile tenant failed"
    finally:
        end(rejecting)
        if process.returncode is None:
            process.kill()
        await process.wait()


def end(task: asyncio.Task[None]) -> None:
    """Cancel an endless task; raises the error if it has failed."""
    if task.done():
        task.result()
    task.cancel()


def expected_jobs(plan: Sequence[Life]) -> dict[tuple[str, str], tuple[str, str]]:
    """Expected jobs by namespace and prefix of the pod name."""
    return {(life.tenant, f"{life.kind}-{life.number}"): life.job for life in plan}


async def _until_over(found: Run) -> None:
    """Wait until all planned pods have been created and have ended."""
    expected = sum(life.pods for life in found.plan)
    forms = found.record.forms
    try:
        await until(lambda: len(forms) >= expected and not unended(found.record), within=SETTLE_TIMEOUT_S)
    except TimeoutError:
        raise AssertionError(
            f"{len(forms)} of {expected} honest pods were created; not ended: {unended(found.record)}"
        ) from None


def unended(record: Record) -> list[str]:
    """Pods that have not ended, with their last status."""
    last = [forms[-1][1] for forms in record.forms.values()]
    return [f"{pod['metadata']['name']} {json.dumps(pod['status'])}" for pod in last if not is_terminal(pod)]
