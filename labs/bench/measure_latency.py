"""Time from a change at the API server until a scrape shows it, under churn."""

import asyncio
import time
from collections.abc import Awaitable
from functools import partial
from statistics import median

from labs.bench import workload
from labs.bench.churn import background
from labs.bench.figure import Figure, p99, stated
from labs.bench.load import Loader
from labs.bench.measure_scrape import marked_gpus, scraped
from labs.bench.subject import Aggregator, MeasurementFailed
from tests.cluster.manifests import path

CHANGES = 300
EVENTS_PER_SECOND = 50
TIMEOUT_SECONDS = 10


class Probe:
    """Changes the allocation of one tenant by one GPU, and scrapes until the change is visible."""

    def __init__(self, aggregator: Aggregator) -> None:
        self.since_sent_ms: list[float] = []
        self.since_returned_ms: list[float] = []
        self._connection = aggregator.connection()

    async def time(self, change: Awaitable[object], *, gpus: float) -> None:
        """Send `change`, and scrape until the tenant has `gpus`."""
        sent = time.monotonic()
        await change
        returned = time.monotonic()
        await asyncio.to_thread(self._await, gpus, returned + TIMEOUT_SECONDS)
        shown = time.monotonic()
        self.since_sent_ms.append(1000 * (shown - sent))
        self.since_returned_ms.append(1000 * (shown - returned))

    def _await(self, gpus: float, deadline: float) -> None:
        while marked_gpus(scraped(self._connection)[1], workload.MARKER) != gpus:
            if time.monotonic() > deadline:
                raise MeasurementFailed(f"a change was not visible after {TIMEOUT_SECONDS} s")


async def measure(loader: Loader, aggregator: Aggregator) -> list[Figure]:
    """Half of the changes bind a pod, the others end one."""
    probe = Probe(aggregator)
    async with background(loader, events_per_second=EVENTS_PER_SECOND):
        for number in range(CHANGES // 2):
            await _bind_and_end(loader, probe, number)
    pods = loader.pods
    returned, sent = probe.since_returned_ms, probe.since_sent_ms
    return [
        Figure(f"latency.ms@{pods}", median(returned), "ms"),
        Figure(f"latency.ms_p99@{pods}", p99(returned), "ms", stated("<= 100", pods)),
        Figure(f"latency.ms_max@{pods}", max(returned), "ms"),
        Figure(f"latency.from_sent_ms@{pods}", median(sent), "ms"),
        Figure(f"latency.from_sent_ms_p99@{pods}", p99(sent), "ms"),
    ]


async def _bind_and_end(loader: Loader, probe: Probe, number: int) -> None:
    manifest = workload.marked(number, name=f"probe-{number}")
    created = (await loader.api.create(manifest))["metadata"]["creationTimestamp"]
    await probe.time(loader.bind(manifest), gpus=1)
    end = partial(workload.succeeded, number, bound=created, started=created)
    await probe.time(loader.api.patch(f"{path(manifest)}/status", end()), gpus=0)
    await loader.api.delete(path(manifest), grace_seconds=0)
