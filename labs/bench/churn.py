"""Creates and deletes pods in addition to the load."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count

from labs.bench import workload
from labs.bench.load import SPARE_NODES, Loader
from tests.cluster.manifests import path

EVENTS_PER_LIFE = 6
FIRST = 1_000_000
"""The first number not used by pods of the load."""


async def live(loader: Loader, number: int, *, pause: float = 0, nodes: int = SPARE_NODES) -> None:
    """Run one pod from creation to deletion: bound, running, ready, ended or deleted gracefully, then force-deleted.

    There are `pause` seconds between two requests. It runs on one of the first `nodes` spare nodes.
    """
    api = loader.api
    manifest = workload.pod(number, on=loader.spare_node(number % nodes))
    pod = path(manifest)
    bound = (await api.create(manifest))["metadata"]["creationTimestamp"]
    await asyncio.sleep(pause)
    started = workload.timestamp()
    for ready in (False, True):
        await api.patch(f"{pod}/status", workload.running(number, bound=bound, started=started, ready=ready))
        await asyncio.sleep(pause)
    if number % 2:
        await api.patch(f"{pod}/status", workload.succeeded(number, bound=bound, started=started))
    else:
        await api.delete(pod, grace_seconds=30)
    await asyncio.sleep(pause)
    await api.delete(pod, grace_seconds=0)


@asynccontextmanager
async def background(loader: Loader, *, events_per_second: int, nodes: int = SPARE_NODES) -> AsyncIterator[None]:
    """Create events at this rate while the context is open; on exit, wait until the last pod is deleted.

    The pods run on the first `nodes` spare nodes.
    """
    stopped = asyncio.Event()

    async def run() -> None:
        async with asyncio.TaskGroup() as lives:
            for number in count(FIRST):
                lives.create_task(live(loader, number, pause=0.4, nodes=nodes))
                with suppress(TimeoutError):
                    await asyncio.wait_for(stopped.wait(), EVENTS_PER_LIFE / events_per_second)
                if stopped.is_set():
                    return

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run())
        try:
            yield
        finally:
            stopped.set()
