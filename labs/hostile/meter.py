"""Measures periodically: process resources, scrapes, and when honest pods and jobs become visible."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Final

import aiohttp

from labs.bench.measure_scrape import marked_gpus
from tests.behaviour.product import Product
from tests.behaviour.recorder import Form, Record, conditions, is_terminal
from tests.cluster.api import Api
from tests.cluster.manifests import Json

SCRAPE_S: Final = 0.25
POLL_S: Final = 0.5
TICKS: Final = os.sysconf("SC_CLK_TCK")
JOBS: Final = "SELECT pod_uid, job_kind, job FROM allocations WHERE namespace IN ({})"


class Yardstick:
    """API server latency of a minimal request, to separate its load from the product's."""

    def __init__(self, api: Api) -> None:
        self.seconds: list[float] = []
        self._api = api

    @property
    def slowest_s(self) -> float:
        """The 99th percentile."""
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)]

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            started_s = time.monotonic()
            await self._api.get("/api/v1/namespaces/default")
            self.seconds.append(time.monotonic() - started_s)
            await asyncio.sleep(POLL_S)


class Meter:
    """Measures one product across restarts, including all its processes."""

    def __init__(self, product: Product, latency: "Latency") -> None:
        self.product = product
        self.latency = latency
        self.peak_mib = 0.0
        self.scrapes_ms: list[float] = []
        """Of each scrape, without the time in which the product was ready to run and had no processor."""
        self.scrape_bytes = 0
        """Largest scrape."""
        self.difference = 0.0
        """Largest absolute reconciliation difference."""
        self.deadlocked = 0
        """Most gangs that waited for each other."""
        self._cpu_s: dict[int, float] = {}

    @property
    def cpu_s(self) -> float:
        """User and system time of all processes."""
        return sum(self._cpu_s.values())

    @property
    def scrape_ms(self) -> float:
        """Median scrape time."""
        return median(self.scrapes_ms)

    @property
    def scrape_p99_ms(self) -> float:
        return sorted(self.scrapes_ms)[int(len(self.scrapes_ms) * 0.99)]

    def ledger_bytes(self) -> int:
        """Size of all ledger files."""
        ledger = self.product.ledger
        return sum(file.stat().st_size for file in ledger.parent.glob(f"{ledger.name}*"))

    def poll(self) -> None:
        """Read CPU and memory of the process, if it exists."""
        with suppress(OSError, ValueError):
            pid = self.product.pid
            self._cpu_s[pid] = cpu_seconds(pid)
            self.peak_mib = max(self.peak_mib, peak_mib(pid))

    async def run(self) -> None:
        """Run until cancelled; failed scrapes of a restarting process are ignored."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            while True:
                self.poll()
                with suppress(aiohttp.ClientError, TimeoutError):
                    await self._scrape(session)
                await asyncio.sleep(SCRAPE_S)

    async def _scrape(self, session: aiohttp.ClientSession) -> None:
        pid = self.product.pid
        started_s, waited_s = time.monotonic(), waited_seconds(pid)
        async with session.get(f"{self.product.url}/metrics") as response:
            body = await response.read()
        self.scrapes_ms.append(1000 * (time.monotonic() - started_s - (waited_seconds(pid) - waited_s)))
        self.scrape_bytes = max(self.scrape_bytes, len(body))
        self.latency.take(body)
        for line in body.splitlines():
            if line.startswith(b"gputally_reconciliation_difference_gpu_seconds"):
                self.difference = max(self.difference, abs(float(line.rpartition(b" ")[2])))
            if line.startswith(b"gputally_deadlocked_gangs "):
                self.deadlocked = max(self.deadlocked, int(float(line.rpartition(b" ")[2])))


class JobWatch:
    """Measures the time from the binding of each honest pod until the ledger has its correct job."""

    def __init__(self, product: Product, record: Record, jobs: dict[tuple[str, str], tuple[str, str]]) -> None:
        self.product = product
        self.delays_s: dict[str, float] = {}
        """Delay by pod UID."""
        self._record = record
        self._jobs = jobs
        """Expected jobs by namespace and name prefix of the pod."""
        self._query = JOBS.format(", ".join(sorted({f"'{namespace}'" for namespace, _ in jobs})))

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self.poll()
            await asyncio.sleep(POLL_S)

    def poll(self) -> None:
        """Query the ledger once."""
        now_us = time.time_ns() // 1000
        for uid, kind, name in self.product.query(self._query):
            bound_us = first_seen_us(self._record.forms.get(uid, []), is_bound)
            if uid not in self.delays_s and bound_us and self.job_of(uid) == (kind, name):
                self.delays_s[uid] = max(0.0, (now_us - bound_us) / 1e6)

    def job_of(self, uid: str) -> tuple[str, str]:
        """The expected job."""
        meta = self._record.forms[uid][0][1]["metadata"]
        stem = "-".join(meta["name"].split("-")[:2])
        return self._jobs[meta["namespace"], stem]

    def unnamed(self) -> list[str]:
        """Bound pods whose job was never correct in the ledger."""
        return [
            forms[0][1]["metadata"]["name"]
            for uid, forms in self._record.forms.items()
            if first_seen_us(forms, is_bound) and uid not in self.delays_s
        ]


class Latency:
    """Measures the time from a binding or end of a pod of `team` until scrapes show it."""

    def __init__(self, record: Record, team: str, namespace: str) -> None:
        self.seconds: list[float] = []
        self._record = record
        self._team = team
        self._namespace = namespace

    def take(self, body: bytes) -> None:
        """Process a scrape received now."""
        changes = self._changes()[len(self.seconds) :]
        allocated_before = len(self.seconds) % 2  # one pod at a time: bound, ended, bound, ended
        if changes and marked_gpus(body, self._team) != allocated_before:
            self.seconds.append(time.time() - changes[0])

    def _changes(self) -> list[float]:
        """Receive times of bindings and ends of the team's pods, in order."""
        mine = [f for f in self._record.forms.values() if f[0][1]["metadata"]["namespace"] == self._namespace]
        bound = [seen_us for forms in mine if (seen_us := first_seen_us(forms, is_bound))]
        ended = [seen_us for forms in mine if (seen_us := first_seen_us(forms, is_terminal))]
        return [seen_us / 1e6 for seen_us in sorted(bound + ended)]


def first_seen_us(forms: list[Form], holds: Callable[[Json], bool]) -> int | None:
    """Receive time of the first update for which `holds` is true."""
    return next((seen_us for _, pod, seen_us in forms if holds(pod)), None)


def is_bound(pod: Json) -> bool:
    return any(mark["status"] == "True" for mark in conditions(pod, "PodScheduled"))


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def waited_seconds(pid: int) -> float:
    """Time that the main thread of a process was ready to run and had no processor; 0 if the kernel does not say it.

    Source: the kernel's Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat".
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except FileNotFoundError:
        return 0.0


def peak_mib(pid: int) -> float:
    """Peak resident memory of a process."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024
