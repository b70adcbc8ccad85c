"""Events per second accounted from a recorded watch, from the first byte sent over loopback until visible."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from kubernetes.watch import Watch

from labs.bench.figure import Figure, stated
from labs.bench.measure_scrape import marked_gpus, scraped
from labs.bench.record import CHURN
from labs.bench.subject import Aggregator, MeasurementFailed
from labs.bench.workload import MARKER
from tests.cluster.control_plane import LOOPBACK, free_ports

TIMEOUT_SECONDS = 120
PEER_SAMPLE = 500
SCRAPE_SECONDS = 0.5
"""Interval between scrapes: each scrape writes changes to the ledger, so a short interval would distort the result."""


def measure(folder: Path, pods: int, *, events: int) -> Iterator[Figure]:
    """Replay the recording in `folder`, a list of `pods`; its churn is repeated up to at least `events` events."""
    recorded = lines_of(folder / CHURN) - 1
    repeats = -(-events // recorded)
    goal = stated(">= 20000", pods)
    peer = "kubernetes client, decoding only", official_client_rate(folder / CHURN)
    with replaying(folder, repeats) as port, Aggregator(folder / "replayed", kubeconfig(folder, port)) as aggregator:
        aggregator.start_fresh()
        listed = time.monotonic() - request_time(port, "/listed")
        yield Figure(f"watch.list_per_s@{pods}", lines_of(folder / "pods.list") / listed, "objects/s", goal, *peer)
        sent_from = request_time(port, "/churn")
        body = until_marked(aggregator)
        took = time.monotonic() - sent_from
    left = value(body, b"gputally_pods")
    if left != pods + 1:
        raise MeasurementFailed(f"{pods} pods and the marker should be left, not {left:g}")
    yield Figure(f"watch.churn_per_s@{pods}", (repeats * recorded + 1) / took, "events/s", goal, *peer)
    yield Figure(f"watch.churn_events@{pods}", repeats * recorded + 1, "events")
    yield Figure(f"watch.churn_mb@{pods}", (folder / CHURN).stat().st_size * repeats / 1e6, "MB")


def value(body: bytes, name: bytes) -> float:
    """The value of a metric without labels."""
    return float(body.partition(b"\n" + name + b" ")[2].partition(b"\n")[0])


def lines_of(file: Path) -> int:
    return file.read_bytes().count(b"\n")


@contextmanager
def replaying(folder: Path, repeats: int) -> Iterator[int]:
    """Run a process that replays the recording; yields its port."""
    [port] = free_ports(1)
    command = [sys.executable, "-m", "labs.bench.replay", str(folder), str(port), str(repeats)]
    process = subprocess.Popen(command)
    try:
        until = time.monotonic() + TIMEOUT_SECONDS
        while not answers(port):
            if process.poll() is not None or time.monotonic() > until:
                raise MeasurementFailed("the replay does not answer")
            time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    try:
        request_time(port, "/listed")
    except OSError:
        return False
    return True


def request_time(port: int, path: str) -> float:
    """The time of the first byte, as reported by the replay process."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT_SECONDS)
    connection.request("GET", path)
    return float(connection.getresponse().read())


def until_marked(aggregator: Aggregator) -> bytes:
    """Wait for the scrape that shows the last event."""
    connection = aggregator.connection()
    until = time.monotonic() + TIMEOUT_SECONDS
    while not marked_gpus(body := scraped(connection)[1], MARKER):
        if time.monotonic() > until:
            raise MeasurementFailed("the end of the recording was not accounted in time")
        time.sleep(SCRAPE_SECONDS)
    return body


def kubeconfig(folder: Path, port: int) -> Path:
    file = folder / "replay.kubeconfig"
    content: dict[str, Any] = {
        "clusters": [{"name": "replay", "cluster": {"server": f"http://{LOOPBACK}:{port}"}}],
        "users": [{"name": "replay", "user": {"token": "any"}}],
        "contexts": [{"name": "replay", "context": {"cluster": "replay", "user": "replay"}}],
        "current-context": "replay",
    }
    file.write_text(json.dumps(content))
    return file


def official_client_rate(file: Path) -> float:
    """Events per second that the official client decodes, without accounting."""
    watch = Watch()
    with file.open() as lines:
        sample = list(islice(lines, PEER_SAMPLE))
    started = time.monotonic()
    for line in sample:
        watch.unmarshal_event(line, "V1Pod")
    return len(sample) / (time.monotonic() - started)
