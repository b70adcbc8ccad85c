"""What the books are told of a kubelet that restarts, and of GPUs that do not answer."""

from pathlib import Path

import pytest

from gputally.agent.agent_settings import AgentSettings
from gputally.agent.kubelet_loop import KubeletLoop
from gputally.devices.kubelet.device_assignments import DeviceAssignment, parse
from gputally.errors import KubeletUnreachable
from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.devices import Gpu, GpuCondition, Part, Reading, Source
from gputally.model.health import NodeHealth
from gputally.model.units import GPU, US_PER_SECOND

RESOURCE = "nvidia.com/gpu.shared"
OFFERED = {RESOURCE: frozenset(f"GPU-a::{number}" for number in range(4))}
HELD = (DeviceAssignment(namespace="ml", pod="serve", container="main", resource=RESOURCE, device=parse("GPU-a::0")),)


class Kubelet:
    """Answers what it is told to, and not at all without `held`."""

    def __init__(self) -> None:
        self.held: tuple[DeviceAssignment, ...] | None = HELD
        self.offered = OFFERED

    async def list(self) -> tuple[DeviceAssignment, ...]:
        if self.held is None:
            raise KubeletUnreachable("gone")
        return self.held

    async def allocatable(self) -> dict[str, frozenset[str]]:
        return self.offered


class Node:
    """A loop that is driven by hand, a second after the other."""

    def __init__(self, folder: Path) -> None:
        self.kubelet = Kubelet()
        self.books = DeviceAccounts()
        self.readings = {"GPU-a": reading(0)}
        self.now_us = 0
        health = NodeHealth(version="1", python="3")
        settings = AgentSettings(node="node-1", pod_logs=str(folder))
        self.loop = KubeletLoop(
            self.kubelet, self.books, self.readings, health, clock=lambda: self.now_us, settings=settings
        )

    async def second(self) -> None:
        self.now_us += US_PER_SECOND
        self.books.read(reading(self.now_us))
        await self.loop.step()

    def shares(self) -> list[tuple[int, int | None]]:
        """Of each holder its share, and when it ended."""
        return [(each.share, each.until_us) for each in self.books.report(self.now_us, "node-1", "1").assignments]


def reading(at_us: int) -> Reading:
    part = Part(uuid="GPU-a", weight=GPU, source=Source.NONE)
    gpu = Gpu(uuid="GPU-a", index=0, minor=0, model="NVIDIA-H100-80GB-HBM3", pci_bus_id="")
    return Reading(gpu=gpu, at_us=at_us, mig=False, parts=(part,), condition=GpuCondition())


@pytest.fixture
async def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    for _ in range(2):
        await node.second()
    assert node.shares() == [(GPU // 4, None)]
    return node


async def test_a_kubelet_that_has_just_come_back_takes_no_share_and_no_replica_away(node: Node) -> None:
    node.kubelet.held = None
    await node.second()
    node.kubelet.held, node.kubelet.offered = (), {}
    await node.second()

    assert node.shares() == [(GPU // 4, None)]

    node.kubelet.held = HELD  # its device plugins come last
    await node.second()
    assert node.shares() == [(GPU // 4, None)]
    node.kubelet.offered = OFFERED
    for _ in range(5):
        await node.second()
    assert node.shares() == [(GPU // 4, None)]


async def test_a_gpu_that_is_lost_is_held_still(node: Node) -> None:
    node.readings.clear()
    node.readings["GPU-b"] = reading(node.now_us)

    await node.second()

    assert node.shares() == [(GPU // 4, None)]
