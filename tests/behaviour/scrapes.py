"""All scrapes of a campaign, across restarts, each compared with the earlier ones."""

import asyncio
import time

import aiohttp

from gputally.catalog.all import FLEET
from gputally.catalog.metric import MetricType

PERIOD_S = 0.05
TIMEOUT = aiohttp.ClientTimeout(total=5)
COUNTERS = tuple(metric.family for metric in FLEET if metric.kind in (MetricType.COUNTER, MetricType.HISTOGRAM))
RECONCILIATION_DIFFERENCE = "gputally_reconciliation_difference_"
WRITABLE = "gputally_ledger_writable"


class Scrapes:
    """Scrapes like Prometheus, but much more often. Fleet counters must not decrease or disappear."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/metrics"
        self.count = 0
        self.unwritten = 0
        """Scrapes while the process could not write its ledger."""
        self.falls: list[str] = []
        self.differences: list[str] = []
        """Reconciliation differences other than 0."""
        self.longest_gap_s = 0.0
        """The longest time between two successful scrapes with a writable ledger."""
        self.highest: dict[str, float] = {}
        """The last value of each counter, by sample name with labels."""
        self._writable_s = time.monotonic()

    async def run(self) -> None:
        """Scrape until cancelled."""
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            while True:
                try:
                    async with session.get(self.url) as response:
                        text = await response.text()
                    if response.status == 200:
                        self.take(text)
                except (aiohttp.ClientError, TimeoutError):
                    pass  # killed, or not up yet
                await asyncio.sleep(PERIOD_S)

    def take(self, text: str) -> None:
        """Check one exposition."""
        self.count += 1
        samples = {name: float(value) for name, _, value in map(split, text.splitlines()) if name}
        counters = {name: value for name, value in samples.items() if name.startswith(COUNTERS)}
        self.differences += [f"{n} {v}" for n, v in samples.items() if n.startswith(RECONCILIATION_DIFFERENCE) and v]
        self.falls += [
            f"scrape {self.count}: {name} fell from {value!r} to {counters.get(name)!r}"
            for name, value in self.highest.items()
            if counters.get(name, -1) < value
        ]
        self.highest |= counters
        writable = samples[WRITABLE] == 1
        self.unwritten += not writable
        if writable:
            now_s = time.monotonic()
            self.longest_gap_s, self._writable_s = max(self.longest_gap_s, now_s - self._writable_s), now_s


def split(line: str) -> tuple[str, str, str]:
    """Name with labels, separator and value; empty strings for a comment."""
    return ("", "", "") if line.startswith("#") else line.rpartition(" ")
