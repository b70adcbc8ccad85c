"""Fills the API server with concurrent requests over persistent connections."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from labs.bench import workload
from tests.cluster.api import Api
from tests.cluster.manifests import Json, path

AT_ONCE = 32
BATCH = 1000
SPARE_NODES = 16
"""Additional nodes for the pods of measurements."""

T = TypeVar("T")


class Loader:
    """Grows one cluster, which has `pods` running pods so far, and their nodes."""

    def __init__(self, api: Api) -> None:
        self.pods = 0
        self.api = api
        self._nodes = 0
        self._growing_since = 0.0

    async def prepare(self) -> None:
        """Create namespaces and PriorityClasses."""
        await each((*workload.namespaces(), *workload.priority_classes()), self.api.create)

    async def grow(self, pods: int) -> None:
        """Create nodes and pods until there are `pods` pods."""
        self._growing_since = time.monotonic()
        nodes = -(-pods // workload.GPUS_PER_NODE) + SPARE_NODES
        await each(map(workload.node, range(self._nodes, nodes)), self.api.create)
        self._nodes = nodes
        while self.pods < pods:
            await self._run_pods(range(self.pods, min(self.pods + BATCH, pods)))

    def spare_node(self, number: int) -> str:
        """A node without pods of the load, selected by the number."""
        return workload.node_of((self._nodes - 1 - number % SPARE_NODES) * workload.GPUS_PER_NODE)

    async def bind(self, pod: Json) -> None:
        """Bind a pod to a spare node, as a scheduler does."""
        await self.api.call("POST", f"{path(pod)}/binding", json=workload.binding(pod, self.spare_node(0)))

    async def _run_pods(self, numbers: range) -> None:
        """Create all pods before the first one starts, so that they have GPUs for a while without running."""
        bound: dict[int, Json] = {}

        async def create(number: int) -> None:
            bound[number] = await self.api.create(workload.pod(number))

        async def start(number: int) -> None:
            created = bound[number]["metadata"]["creationTimestamp"]
            status = workload.running(number, bound=created, started=workload.timestamp())
            await self.api.patch(f"{path(bound[number])}/status", status)

        await each(numbers, create)
        await each(numbers, start)
        self.pods = numbers.stop
        say(f"  {self.pods} pods after {time.monotonic() - self._growing_since:.0f} s")


async def each(items: Iterable[T], call: Callable[[T], Awaitable[object]], *, at_once: int = AT_ONCE) -> None:
    """Call `call` for every item, with limited concurrency."""
    queue = iter(items)

    async def work() -> None:
        for item in queue:
            await call(item)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(work())


def say(text: str) -> None:
    """Print progress to stderr, separate from the results."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
