"""Agents of two nodes as separate processes, and fake kubelets that assign GPUs to the pods in the API."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.behaviour.recorder import is_terminal
from tests.behaviour.stage import PODS
from tests.cluster.api import Api
from tests.cluster.component import Component
from tests.cluster.control_plane import LOOPBACK, free_ports
from tests.cluster.manifests import GPU
from tests.cluster.objects import Items
from tests.fakes.kubelet import Kubelet, Message, pod, running
from tests.monitoring_e2e.gpus import ScriptedGpu
from tests.nvml.build import environment
from tests.nvml.script import Gpu


@dataclass(frozen=True)
class Measured:
    """A node whose only GPU is measured by an agent."""

    node: str
    gpu: ScriptedGpu
    kubelet: Kubelet
    url: str

    def assign(self, pods: Items) -> None:
        """Make the kubelet report which of the pods holds the GPU."""
        self.kubelet.pods = [self._assignment(each["metadata"]) for each in pods if holds_gpu(each, self.node)]

    def _assignment(self, meta: Mapping[str, str]) -> Message:
        return pod(f"{meta['namespace']}/{meta['name']}", {GPU: [self.gpu.gpu.uuid]})


def holds_gpu(item: Mapping[str, Mapping[str, str]], node: str) -> bool:
    """Whether the pod holds the node's GPU: from its binding until its containers have exited."""
    return item["spec"].get("nodeName") == node and not is_terminal(dict(item))


@asynccontextmanager
async def agents_on(nodes: Mapping[str, Gpu], api: Api, scratch: Path) -> AsyncIterator[Sequence[Measured]]:
    """A ready agent on each node with that GPU."""
    async with AsyncExitStack() as stack:
        found = [await stack.enter_async_context(_agent(node, gpu, home(scratch, node))) for node, gpu in nodes.items()]
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(_follow(api, found), name="kubelets")
            yield found
            following.cancel()


def home(scratch: Path, node: str) -> Path:
    """A new folder for the files of one node."""
    folder = scratch / node
    folder.mkdir()
    return folder


@asynccontextmanager
async def _agent(node: str, gpu: Gpu, scratch: Path) -> AsyncIterator[Measured]:
    scripted = ScriptedGpu(scratch / "gpus.txt", gpu)
    [port] = free_ports(1)
    url = f"http://{LOOPBACK}:{port}"
    async with running(scratch / "kubelet.sock") as kubelet:
        kubelet.allocatable = {GPU: [gpu.uuid]}
        command = [
            "/usr/bin/env",
            *(f"{name}={value}" for name, value in environment(scripted.path).items()),
            *(sys.executable, "-m", "gputally", "agent", "--node", node, "--host.pod-logs", str(scratch)),
            *("--kubelet.socket", str(scratch / "kubelet.sock"), "--web.listen-address", f"{LOOPBACK}:{port}"),
        ]
        agent = Component(command, log=scratch / "agent.log", health=f"{url}/readyz")
        agent.launch()
        try:
            await agent.ready()
            yield Measured(node, scripted, kubelet, url)
        finally:
            agent.kill()


async def _follow(api: Api, nodes: Sequence[Measured]) -> None:
    """Update the kubelets from the API's pods until cancelled."""
    async with aclosing(api.states(PODS)) as states:
        async for pods in states:
            for each in nodes:
                each.assign(pods)
