"""Measures scrape time, size and memory."""

import http.client
import time
from collections.abc import Iterator

from labs.bench.figure import Figure, spread, stated
from labs.bench.subject import Aggregator, MeasurementFailed, resident_mib

SCRAPES = 50
POD_SERIES = "/metrics/pods"
POD_SCRAPES = 20
SCRAPE_INTERVAL_SECONDS = 5.0


def measure(aggregator: Aggregator, pods: int, *, settle_seconds: float) -> Iterator[Figure]:
    """Memory when ready, then sequential scrapes, then memory after `settle_seconds` of periodic scrapes."""
    ready = time.monotonic()
    yield Figure(f"memory.ready_mib@{pods}", resident_mib(aggregator.pid), "MiB")
    connection = aggregator.connection()
    bodies = [scraped(connection)[1] for _ in range(2)]  # the first scrape shows new series as 0 and renders them
    yield Figure(f"scrape.series@{pods}", series(bodies[-1]), "series")
    yield Figure(f"scrape.mb@{pods}", len(bodies[-1]) / 1e6, "MB", stated("<= 1.2", pods))
    times = [scraped(connection)[0] for _ in range(SCRAPES)]
    yield from spread(f"scrape.ms@{pods}", times, "ms", goal=stated("<= 6", pods))
    zipped = [scraped(connection, encoding="gzip") for _ in range(SCRAPES)]
    yield Figure(f"scrape.gzip_mb@{pods}", len(zipped[-1][1]) / 1e6, "MB")
    yield from spread(f"scrape.gzip_ms@{pods}", [ms for ms, _ in zipped], "ms")
    while time.monotonic() < ready + settle_seconds:
        time.sleep(min(SCRAPE_INTERVAL_SECONDS, max(0.0, ready + settle_seconds - time.monotonic())))
        scraped(connection)
    yield Figure(f"memory.settled_mib@{pods}", resident_mib(aggregator.pid), "MiB", stated("<= 150", pods))
    yield Figure(f"memory.peak_mib@{pods}", resident_mib(aggregator.pid, peak=True), "MiB")
    yield from _by_pod(aggregator, pods)


def _by_pod(aggregator: Aggregator, pods: int) -> Iterator[Figure]:
    """The endpoint with series by pod; last, because memory grows with its first scrape."""
    connection = aggregator.connection()
    plain = [scraped(connection, path=POD_SERIES) for _ in range(POD_SCRAPES)]
    zipped = [scraped(connection, path=POD_SERIES, encoding="gzip") for _ in range(POD_SCRAPES)]
    yield Figure(f"scrape.by_pod_mb@{pods}", len(plain[-1][1]) / 1e6, "MB")
    yield from spread(f"scrape.by_pod_ms@{pods}", [ms for ms, _ in plain], "ms")
    yield Figure(f"scrape.by_pod_gzip_mb@{pods}", len(zipped[-1][1]) / 1e6, "MB")
    yield from spread(f"scrape.by_pod_gzip_ms@{pods}", [ms for ms, _ in zipped], "ms")
    yield Figure(f"memory.by_pod_mib@{pods}", resident_mib(aggregator.pid), "MiB", stated("<= 150", pods))


def scraped(
    connection: http.client.HTTPConnection, *, path: str = "/metrics", encoding: str = "identity"
) -> tuple[float, bytes]:
    """Milliseconds to the last byte, and the body."""
    started = time.monotonic()
    connection.request("GET", path, headers={"Accept-Encoding": encoding})
    response = connection.getresponse()
    body = response.read()
    took = 1000 * (time.monotonic() - started)
    if response.status != http.client.OK:
        raise MeasurementFailed(f"a scrape was answered {response.status}: {body[:200].decode()}")
    return took, body


def series(body: bytes) -> int:
    """Number of samples in an exposition."""
    return sum(1 for line in body.splitlines() if not line.startswith(b"#"))


def marked_gpus(body: bytes, marker: str) -> float:
    """GPUs allocated to the tenant `marker`."""
    _, _, rest = body.partition(b"# TYPE gputally_allocated_gpus ")
    family, _, _ = rest.partition(b"# HELP")
    wanted = f'tenant="{marker}"'.encode()
    return sum(float(line.rsplit(b" ", 1)[1]) for line in family.splitlines() if wanted in line)
