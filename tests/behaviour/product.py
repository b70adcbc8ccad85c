"""The product as users run it: a separate process, queried over HTTP, its ledger read with plain SQL."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from tests.behaviour.recorder import Bill
from tests.cluster.control_plane import free_ports

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
Rows = list[tuple[Any, ...]]

CONFIGURATION = """
kind: Configuration
tenants:
  rules:
    - from: namespace-label
      key: team
"""
PRICE = Decimal("2.21")
PRICES = f"""
kind: PriceBook
currency: USD
basis: node
rules:
  - match: {{gpu_model: NVIDIA-A100*}}
    price: {PRICE}
    effective_from: always
"""
SEGMENTS = """
SELECT s.pod_uid, s.tier, s.tenant, s.state, s.quantity, s.start_us, s.end_us, p.per_gpu_hour
FROM current_segments s JOIN prices p ON p.price_key = s.price_key
"""
COUNTED = """
SELECT label_tier, label_tenant, label_gpu_model, state, sum(quantity * (end_us - start_us)) FROM current_segments
GROUP BY label_tier, label_tenant, label_gpu_model, state
"""
OPEN = "SELECT pod_uid FROM current_segments WHERE end_us IS NULL"
GAPS = """
SELECT pod_uid, gap_from_us, gap_to_us FROM allocations a WHERE gap_to_us NOTNULL
AND revision = (SELECT max(revision) FROM allocations b WHERE b.pod_uid = a.pod_uid)
"""


class Product:
    """One aggregator at a time, always with the same files and port.

    The ledger is in the folder `ledger_folder`, by default `scratch`; `environment` adds variables to ours.
    New series are 0 for `zero_s`.
    """

    def __init__(
        self,
        scratch: Path,
        kubeconfig: Path,
        *,
        ledger_folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        zero_s: int = 0,
        configuration: str = CONFIGURATION,
    ) -> None:
        self.ledger = (ledger_folder or scratch) / "ledger.db"
        self._environment = os.environ | (environment or {})
        self.log = scratch / "aggregator.log"
        [port] = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self._process: asyncio.subprocess.Process | None = None
        (scratch / "config.yaml").write_text(configuration)
        (scratch / "prices.yaml").write_text(PRICES)
        self._command = (
            *(sys.executable, "-m", "gputally", "aggregator"),
            *("--kubeconfig", str(kubeconfig), "--ledger", str(self.ledger)),
            *("--config.file", str(scratch / "config.yaml"), "--prices.file", str(scratch / "prices.yaml")),
            *("--web.listen-address", f"127.0.0.1:{port}"),
            *("--metrics.zero-seconds", str(zero_s)),
        )

    async def launch(self) -> None:
        """Start the process without waiting."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdout=log, stderr=log, env=self._environment
            )

    async def start(self) -> None:
        """Start the process and wait until it is ready."""
        await self.launch()
        await self.ready()

    async def ready(self, *, within: float = 40) -> None:
        """Wait for /readyz; if the process dies, fail with its log."""
        async with asyncio.timeout(within):
            while not await self.is_ready():
                assert self.is_alive, self.log.read_text()
                await asyncio.sleep(0.02)

    @property
    def pid(self) -> int:
        """The PID of the process, also after it has ended."""
        assert self._process
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs, ready or not."""
        return self._process is not None and self._process.returncode is None

    @property
    def peak_bytes(self) -> int:
        """The peak resident memory of the process."""
        assert self._process
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    async def ended(self, *, within: float = 40) -> int:
        """Wait until the process exits by itself; returns its exit status."""
        assert self._process
        async with asyncio.timeout(within):
            return await self._process.wait()

    async def is_ready(self, page: str = "readyz") -> bool:
        """Whether /readyz, or another page, answers 200 now."""
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{self.url}/{page}") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    async def kill(self) -> bool:
        """Send SIGKILL; returns whether that ended the process."""
        if not self._process or self._process.returncode is not None:
            return False
        os.kill(self._process.pid, signal.SIGKILL)
        return await self._process.wait() == -signal.SIGKILL

    async def stop(self) -> int:
        """Send SIGTERM; returns the exit status."""
        assert self._process
        self._process.terminate()
        return await self._process.wait()

    async def scrape(self) -> Samples:
        """All samples of /metrics."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/metrics") as response:
            assert response.status == 200
            text = await response.text()
        families = text_string_to_metric_families(text)
        return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}

    async def released(self) -> Samples:
        """A scrape taken once no allocation is open."""
        await self.query_until(OPEN, lambda rows: not rows)
        return await self.scrape()

    async def until(self, holds: Callable[[Samples], bool], *, within: float = 20) -> Samples:
        """The first scrape for which `holds` is true."""
        samples = Samples()
        try:
            async with asyncio.timeout(within):
                while not holds(samples := await self.scrape()):  # noqa: ASYNC110 - a scrape sends no signal
                    await asyncio.sleep(0.05)
        except TimeoutError:
            gauges = [f"{name}{dict(labels)} {value}" for (name, labels), value in samples.items() if "_gpus" in name]
            raise AssertionError("the expected samples did not appear; last gauges:\n" + "\n".join(gauges)) from None
        return samples

    async def query_until(self, sql: str, holds: Callable[[Rows], bool], *, within: float = 20) -> Rows:
        """The rows of a query, once `holds` is true for them."""
        rows: Rows = []
        try:
            async with asyncio.timeout(within):
                while not holds(rows := self.query(sql)):  # noqa: ASYNC110 - a file sends no signal
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"the expected rows did not appear; last rows:\n{rows}") from None
        return rows

    def bill(self) -> Bill:
        """GPU-time and cost of all pods by (tier, tenant, state). Fails if an allocation is still open."""
        bill = Bill()
        for _, tier, tenant, state, quantity, start_us, end_us, price in self.query(SEGMENTS):
            assert end_us is not None, "an allocation is still open"
            bill.add((tier, tenant, state), quantity * (end_us - start_us), Decimal(price))
        return bill

    def counted(self) -> dict[frozenset[tuple[str, str]], int]:
        """GPU-time of all ended pods, by the labels of its series."""
        names = ("tier", "tenant", "gpu_model", "state")
        found = {frozenset(zip(names, labels, strict=True)): gpu_time for *labels, gpu_time in self.query(COUNTED)}
        return {group: gpu_time for group, gpu_time in found.items() if gpu_time}

    def gap(self) -> dict[str, tuple[int, int]]:
        """The observation gap (µs) in which a pod ended, by UID."""
        return {uid: (from_us, to_us) for uid, from_us, to_us in self.query(GAPS)}

    def accounted(self) -> set[str]:
        """UIDs of all pods with an allocation."""
        return {uid for (uid,) in self.query("SELECT DISTINCT pod_uid FROM allocations")}

    def victims(self) -> set[str]:
        """UIDs of all pods counted as preempted."""
        return {uid for (uid,) in self.query("SELECT DISTINCT victim_uid FROM preemptions")}

    def interruptions(self) -> list[tuple[int, int]]:
        """The intervals (µs) without a pod watch for which the server kept no history."""
        return [(row[0], row[1]) for row in self.query("SELECT from_us, to_us FROM interruptions WHERE kind = 'pods'")]

    def query(self, sql: str) -> Rows:
        """Rows of the ledger, read through a separate connection."""
        connection = sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()


def total(samples: Samples, name: str, **labels: str) -> float:
    """The sum of the series with that name and these labels."""
    wanted = set(labels.items())
    return sum(value for (sample, actual), value in samples.items() if sample == name and wanted <= actual)
