"""Measures kube-state-metrics, the usual source of pod and node metrics, on the same cluster."""

import http.client
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from hack.build import KUBE_STATE_METRICS
from labs.bench.figure import Figure
from labs.bench.measure_scrape import scraped, series
from labs.bench.server import ApiServer
from labs.bench.subject import MeasurementFailed, resident_mib
from tests.cluster.control_plane import LOOPBACK, free_ports

SCRAPES = 5
TIMEOUT_SECONDS = 60
POD = b"\nkube_pod_info{"


def measure(server: ApiServer, folder: Path, pods: int) -> Iterator[Figure]:
    """The first full sync ends at the start of the first scrape with all pods, which favours the peer."""
    ports = free_ports(2)
    command = [
        *(str(KUBE_STATE_METRICS.path), f"--kubeconfig={server.kubeconfig('gputally')}", "--resources=pods,nodes"),
        *(f"--host={LOOPBACK}", f"--port={ports[0]}", f"--telemetry-host={LOOPBACK}", f"--telemetry-port={ports[1]}"),
    ]
    launched = time.monotonic()
    with (folder / "kube-state-metrics.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        connection = http.client.HTTPConnection(LOOPBACK, ports[0], timeout=TIMEOUT_SECONDS)
        yield Figure(f"peer.ksm_ready_s@{pods}", synced(connection, pods, launched) - launched, "s")
        scrapes = [scraped(connection) for _ in range(SCRAPES)]
        yield Figure(f"peer.ksm_scrape_ms@{pods}", median(ms for ms, _ in scrapes), "ms")
        yield Figure(f"peer.ksm_scrape_mb@{pods}", len(scrapes[-1][1]) / 1e6, "MB")
        yield Figure(f"peer.ksm_series@{pods}", series(scrapes[-1][1]), "series")
        yield Figure(f"peer.ksm_memory_mib@{pods}", resident_mib(process.pid), "MiB")
    finally:
        process.kill()
        process.wait()


def synced(connection: http.client.HTTPConnection, pods: int, launched: float) -> float:
    """The start of the first scrape with all pods."""
    while time.monotonic() < launched + TIMEOUT_SECONDS:
        started = time.monotonic()
        try:
            _, body = scraped(connection)
        except OSError:
            connection.close()
            body = b""
        if body.count(POD) >= pods:
            return started
        time.sleep(0.05)
    raise MeasurementFailed(f"kube-state-metrics does not show {pods} pods after {TIMEOUT_SECONDS} s")
