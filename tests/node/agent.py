"""Our agent as a node runs it: a process of its own, which sees the scripted driver and the real kubelet."""

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from gputally.model.usage import AssignmentReport, GpuReport, UsageReport
from tests.behaviour.product import Samples
from tests.cluster.component import Component
from tests.cluster.control_plane import LOOPBACK, free_ports
from tests.cluster.manifests import Json
from tests.node.node import Node
from tests.nvml.build import environment


class Agent(Component):
    """Always at the same port, with the same token; killed and launched again it is a new one."""

    def __init__(self, scratch: Path, node: Node, *, script: Path) -> None:
        [port] = free_ports(1)
        self.url = f"http://{LOOPBACK}:{port}"
        self.token_file = scratch / "token"
        self.token_file.write_text(secrets.token_hex())
        command = [
            "/usr/bin/env",
            *(f"{name}={value}" for name, value in environment(script).items()),
            *(sys.executable, "-m", "gputally", "agent", "--node", node.name),
            *("--kubelet.socket", str(node.pod_resources), "--host.pod-logs", str(node.kubelet.logs)),
            *("--web.listen-address", f"{LOOPBACK}:{port}", "--usage.token-file", str(self.token_file)),
        ]
        super().__init__(command, log=scratch / "agent.log", health=f"{self.url}/readyz")
        self.name = "agent"

    async def start(self) -> None:
        """Returns when it reads GPUs, and the kubelet has told who holds them."""
        self.launch()
        await self.ready()

    async def report(self) -> UsageReport:
        """The answer of /v1/usage."""
        headers = {"Authorization": f"Bearer {self.token_file.read_text()}"}
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/v1/usage", headers=headers) as answer:
            assert answer.status == 200
            return msgspec.json.decode(await answer.read(), type=UsageReport)

    async def scrape(self) -> Samples:
        """All samples of /metrics."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/metrics") as answer:
            assert answer.status == 200
            text = await answer.text()
        families = text_string_to_metric_families(text)
        return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def assignments_of(report: UsageReport, pod: Json) -> Sequence[AssignmentReport]:
    """What a pod holds and held, a report for each device."""
    meta = pod["metadata"]
    return [each for each in report.assignments if (each.namespace, each.pod) == (meta["namespace"], meta["name"])]


def gpu_of(report: UsageReport, uuid: str) -> GpuReport:
    [found] = [gpu for gpu in report.gpus if gpu.uuid == uuid]
    return found


def is_settled(report: UsageReport, assignment: AssignmentReport) -> bool:
    """Whether it has ended, and all that it did is told."""
    return assignment.until_us is not None and gpu_of(report, assignment.gpu).watermark_us >= assignment.until_us


def used_by(assignments: Sequence[AssignmentReport]) -> int:
    """In µs·µGPU."""
    return sum(hour.used for assignment in assignments for hour in assignment.hours)


def measured_by(assignments: Sequence[AssignmentReport]) -> int:
    return sum(hour.measured for assignment in assignments for hour in assignment.hours)
