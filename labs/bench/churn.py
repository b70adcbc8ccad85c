"""Pods that come and go beside the load."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count

from labs.bench import workload
from labs.bench.load import Loader
from tests.cluster.manifests import path

EVENTS_PER_LIFE = 6
FIRST = 1_000_000
"""Numbers from here on are of no loaded pod."""


async def live(loader: Loader, number: int, *, pause: float = 0) -> None:
    """A pod from creation to deletion: bound, running, ready, ended or told to end, then released and gone at once.

    `pause` seconds lie between two requests.
    """
    api = loader.api
    manifest = workload.pod(number, on=loader.spare_node(number))
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
async def background(loader: Loader, *, events_per_second: int) -> AsyncIterator[None]:
    """So many events a second while the context is open, then until the last pod is gone."""
    over = asyncio.Event()

    async def run() -> None:
        async with asyncio.TaskGroup() as lives:
            for number in count(FIRST):
                lives.create_task(live(loader, number, pause=0.4))
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), EVENTS_PER_LIFE / events_per_second)
                if over.is_set():
                    return

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run())
        try:
            yield
        finally:
            over.set()
