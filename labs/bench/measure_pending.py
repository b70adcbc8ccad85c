"""Time from a change at the API server until verdicts on pending pods follow it, and what these pods cost."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median

from labs.bench.churn import background
from labs.bench.figure import Figure, p99, spread, stated
from labs.bench.load import SPARE_NODES, Loader
from labs.bench.measure_scrape import scraped
from labs.bench.subject import Aggregator, MeasurementFailed, resident_mib
from labs.bench.waiting import block
from tests.cluster.manifests import path

CHANGES = 150
EVENTS_PER_SECOND = 50
CHURNED = SPARE_NODES // 2
"""The spare nodes of the pods that come and go; those of the changes are the others."""
SCRAPES = 50
TIMEOUT_SECONDS = 30
SETTLE_SECONDS = 20
_LIST = "/api/v1/pending?limit=1"
_FAMILY = b"gputally_pending_reason_pods{"
_UNKNOWN = "not_yet_known"
_FITS = "schedulable"
Reasons = Mapping[str, float]


async def measure(loader: Loader, aggregator: Aggregator, *, waiting: int, others: int) -> list[Figure]:
    """Start with `waiting` pods; then free a node, until some pods fit, and take it again, until none does."""
    label = f"{waiting}waiting" + (f"+{others}others" if others else "")
    aggregator.start_fresh()
    ready = time.monotonic()
    verdicts = Verdicts(aggregator)
    await asyncio.to_thread(verdicts.until_all, waiting)
    known_s = time.monotonic() - ready
    connection = aggregator.connection()  # one for all scrapes, as Prometheus keeps its own
    first_ms, _ = await asyncio.to_thread(scraped, connection)
    await asyncio.sleep(SETTLE_SECONDS)
    scrapes = [scraped(connection)[0] for _ in range(SCRAPES)]
    follow: list[float] = []
    async with background(loader, events_per_second=EVENTS_PER_SECOND, nodes=CHURNED):
        for number in range(CHANGES):
            follow += await _free_and_take(loader, verdicts, number)
    memory = Figure(
        f"pending.memory_mib.{label}@{loader.pods}",
        resident_mib(aggregator.pid),
        "MiB",
        stated(f"<= {220 if others else 150}", loader.pods),
    )
    first = Figure(f"pending.first_scrape_s.{label}@{loader.pods}", first_ms / 1000, "s")
    return [first, *_figures(label, loader.pods, known_s, scrapes, follow), memory]


class Verdicts:
    """The number of pending pods by reason, as the API and scrapes show it."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._connection = aggregator.connection()

    def until_all(self, waiting: int) -> None:
        """Ask the API until all these pods have a verdict: the first scrape waits for the first write of the ledger."""
        self._until(lambda found: sum(found.values()) - found.get(_UNKNOWN, 0) >= waiting, self._listed)

    def until_any_fits(self, *, fits: bool) -> None:
        """Scrape until some pods fit, or none does."""
        self._until(lambda found: (found.get(_FITS, 0) > 0) is fits, self._scraped)

    def _until(self, holds: Callable[[Reasons], bool], read: Callable[[], Reasons]) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not holds(found := read()):
            if time.monotonic() > deadline:
                raise MeasurementFailed(f"verdicts did not follow within {TIMEOUT_SECONDS} s: {found}")

    def _listed(self) -> Reasons:
        _, body = scraped(self._connection, path=_LIST)
        return {each["reason"]: each["pods"] for each in json.loads(body)["reasons"]}

    def _scraped(self) -> Reasons:
        found: dict[str, float] = {}
        for line in scraped(self._connection)[1].splitlines():
            if line.startswith(_FAMILY):
                labels, _, value = line.decode().rpartition(" ")
                reason = labels.partition('reason="')[2].partition('"')[0]
                found[reason] = found.get(reason, 0) + float(value)
        return found


async def _free_and_take(loader: Loader, verdicts: Verdicts, number: int) -> list[float]:
    """Milliseconds from each answer of the API server until the verdicts follow."""
    pod, times = block(loader, CHURNED + number % (SPARE_NODES - CHURNED)), list[float]()
    for fits in (True, False):
        await (loader.api.delete(path(pod), grace_seconds=0) if fits else loader.api.create(pod))
        returned = time.monotonic()
        await asyncio.to_thread(verdicts.until_any_fits, fits=fits)
        times.append(1000 * (time.monotonic() - returned))
    return times


def _figures(label: str, pods: int, known_s: float, scrapes: list[float], follow: list[float]) -> Iterator[Figure]:
    yield Figure(f"pending.known_after_ready_s.{label}@{pods}", known_s, "s", stated("<= 1", pods))
    yield from spread(f"pending.scrape_ms.{label}@{pods}", scrapes, "ms", goal=stated("<= 6", pods))
    yield Figure(f"pending.verdict_ms.{label}@{pods}", median(follow), "ms")
    yield Figure(f"pending.verdict_ms_p99.{label}@{pods}", p99(follow), "ms", stated("<= 250", pods))
    yield Figure(f"pending.verdict_ms_max.{label}@{pods}", max(follow), "ms")
