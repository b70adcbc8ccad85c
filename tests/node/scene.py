"""A node whose agent reads scripted GPUs, an aggregator that asks it, and what tests do with pods between them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from gputally.model.units import GPU, GPU_SECOND
from gputally.model.usage import AssignmentReport, UsageReport
from tests.behaviour.conftest import grant_documented_rights
from tests.behaviour.product import Product, Samples, total
from tests.cluster.api import Api, Refused
from tests.cluster.manifests import GPU as NVIDIA_GPU
from tests.cluster.manifests import Json, path, priority_class
from tests.node.agent import Agent, assignments_of, is_settled, used_by
from tests.node.gpus import ScriptedGpus
from tests.node.node import Node, node_pod
from tests.node.pods import running

logger = logging.getLogger(__name__)

CLOSE = 0.01
"""How far what is measured may be from what was scripted."""
USED = "gputally_used_gpu_seconds_total"
CONTAINER_USED = "gputally_container_used_gpu_seconds_total"
ALLOCATED = "gputally_allocated_gpu_seconds_total"


class Booked(NamedTuple):
    """What the ledger has of a pod, in µs·µGPU."""

    uid: str
    measured: int
    used: int


class Segment(NamedTuple):
    """A piece of a pod's allocation as it is charged."""

    state: str
    quantity: int
    start_us: int
    end_us: int | None


@dataclass(frozen=True)
class Measurement:
    """What runs as long as there are tests of it."""

    gpus: ScriptedGpus
    agent: Agent
    product: Product


@asynccontextmanager
async def measurement(node: Node, scratch: Path) -> AsyncIterator[Measurement]:
    """The aggregator has the documented rights, and asks the agent every second."""
    gpus = ScriptedGpus(scratch / "gpus.txt", node)
    agent = Agent(scratch, node, script=gpus.path)
    settings = {"URLS": f"{node.name}={agent.url}", "INTERVAL": "1", "TOKEN_FILE": str(agent.token_file)}
    product = Product(
        scratch,
        node.control_plane.kubeconfig("gputally"),
        environment={f"GPUTALLY_AGENTS_{name}": value for name, value in settings.items()},
    )
    async with node.api() as api:
        await grant_documented_rights(api)
    async with AsyncExitStack() as stack:
        stack.callback(agent.kill)
        await agent.start()
        stack.push_async_callback(product.kill)
        await product.start()
        yield Measurement(gpus, agent, product)


@dataclass(frozen=True)
class Scene:
    """One test's part: its pods, each a tier of its own, are the tenant `place`."""

    node: Node
    api: Api
    place: str
    gpus: ScriptedGpus
    agent: Agent
    product: Product

    async def run(self, name: str, *, gpus: int, resource: str = NVIDIA_GPU, grace_seconds: int = 1) -> Json:
        """A pod that holds so many, once it runs."""
        pod = node_pod(name, self.place, gpus=gpus, resource=resource, grace_seconds=grace_seconds)
        return await running(self.api, await self.create(pod))

    async def create(self, pod: Json, *, priority: int = 100) -> Json:
        """A pod of the tier of its name, which is made for it."""
        pod["spec"]["priorityClassName"] = self.tier(pod["metadata"]["name"])
        await self.api.create(priority_class(pod["spec"]["priorityClassName"], priority))
        async with asyncio.timeout(10):
            while True:
                try:
                    return await self.api.create(pod)
                except Refused as refusal:  # the API server learns of a tier a moment after it has stored it
                    if "no PriorityClass" not in str(refusal):
                        raise
                await asyncio.sleep(0.05)

    def tier(self, name: str) -> str:
        return f"{self.place}-{name}"

    async def told(self, holds: Callable[[UsageReport], bool], *, within: float = 30) -> UsageReport:
        """The agent's first report that `holds`."""
        async with asyncio.timeout(within):
            while not holds(report := await self.agent.report()):  # noqa: ASYNC110 - it sends no signal
                await asyncio.sleep(0.1)
        return report

    async def held(self, *pods: Json, count: int) -> UsageReport:
        """A report that has so many holders of the pods."""
        return await self.told(lambda report: sum(len(assignments_of(report, pod)) for pod in pods) == count)

    async def end(self, *pods: Json) -> UsageReport:
        """Delete them, and return once the agent has told all that they did."""
        for pod in pods:
            await self.api.delete(path(pod))
        return await self.over(*pods)

    async def over(self, *pods: Json) -> UsageReport:
        """A report after they ended, with all that they did."""

        def is_over(report: UsageReport) -> bool:
            return all(is_settled(report, assignment) for pod in pods for assignment in assignments_of(report, pod))

        return await self.told(is_over)

    async def booked(self, report: UsageReport, *pods: Json) -> dict[str, Booked]:
        """What the ledger has of each pod by its name, once that is as much as the report tells."""
        query = f"""
            SELECT pod, pod_uid, sum(measured), sum(used) FROM usage_by_pod
            WHERE namespace = '{self.place}' GROUP BY pod, pod_uid
        """
        wanted = {(pod["metadata"]["name"], used_by(assignments_of(report, pod))) for pod in pods}
        rows = await self.product.query_until(query, lambda rows: wanted <= {(name, used) for name, *_, used in rows})
        return {name: Booked(uid, measured, used) for name, uid, measured, used in rows}

    async def published(self, pod: Json, used: int, *, name: str = USED) -> None:
        """Return once the counter `name` of the pod's tier and tenant shows so much."""
        labels = {"tier": self.tier(pod["metadata"]["name"]), "tenant": self.place}
        await self.product.until(lambda samples: abs(total(samples, name, **labels) - used / GPU_SECOND) < 1e-6)

    async def shown(self, holds: Callable[[Samples], bool], *, within: float = 20) -> Samples:
        """The agent's first scrape that `holds`."""
        async with asyncio.timeout(within):
            while not holds(samples := await self.agent.scrape()):  # noqa: ASYNC110 - the same
                await asyncio.sleep(0.1)
        return samples

    async def segments(self, pod: Json) -> Sequence[Segment]:
        """How it was charged, once all of it is."""
        uid = pod["metadata"]["uid"]
        rows = await self.product.query_until(
            f"SELECT state, quantity, start_us, end_us FROM current_segments WHERE pod_uid = '{uid}' ORDER BY start_us",
            lambda rows: bool(rows) and all(row[3] for row in rows),
        )
        return [Segment(*row) for row in rows]

    def due(self, assignment: AssignmentReport, others: Sequence[AssignmentReport] = ()) -> Fraction:
        """The µs·µGPU that it used by the script, of a device which it and `others` share alike, from end to end."""
        assert assignment.until_us
        weight = assignment.share if assignment.device.startswith("MIG-") else GPU
        ends = {each for other in (assignment, *others) for each in (other.since_us, other.until_us or 0)}
        inside = sorted(each for each in ends if assignment.since_us <= each <= assignment.until_us)
        return sum(
            (
                self.gpus.percent_us(assignment.device, *span) * weight / 100 / (1 + len(present(others, *span)))
                for span in pairwise(inside)
            ),
            Fraction(0),
        )


def present(assignments: Sequence[AssignmentReport], from_us: int, to_us: int) -> Sequence[AssignmentReport]:
    """Those that are there all that time."""
    return [each for each in assignments if each.since_us <= from_us and to_us <= (each.until_us or to_us)]


def assert_close(what: str, measured: int, due: Fraction) -> None:
    """Within a hundredth of what the script says."""
    off = float(measured / due - 1)
    logger.info("%s: used %.3f, scripted %.3f GPU-s: %+.3f %%", what, measured / 1e12, due / 10**12, 100 * off)
    assert abs(off) < CLOSE, f"{what}: {measured / 1e12} instead of {float(due) / 1e12} GPU-s"


def total_of(segments: Sequence[Segment], state: str) -> int:
    """µs·µGPU in that state."""
    return sum(each.quantity * ((each.end_us or 0) - each.start_us) for each in segments if each.state == state)
