"""All scrapes of a campaign, from whatever process is up, each held against the ones before."""

import asyncio
import time

import aiohttp

from gputally.catalog.all import FLEET
from gputally.catalog.metric import MetricType

PERIOD_S = 0.05
PATIENCE = aiohttp.ClientTimeout(total=5)
COUNTERS = tuple(metric.family for metric in FLEET if metric.kind in (MetricType.COUNTER, MetricType.HISTOGRAM))
RECONCILIATION_DIFFERENCE = "gputally_reconciliation_difference_gpu_seconds"
WRITABLE = "gputally_ledger_writable"


class Scrapes:
    """Prometheus' part, played impatiently. What the counters of the fleet say may neither fall nor disappear."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/metrics"
        self.count = 0
        self.unwritten = 0
        """Scrapes of a process that could not write its ledger."""
        self.falls: list[str] = []
        self.differences: list[str] = []
        """Samples that were not 0."""
        self.longest_gap_s = 0.0
        """Between two scrapes that were all well."""
        self.highest: dict[str, float] = {}
        """Each counter's last value, by its sample name with labels."""
        self._well_s = time.monotonic()

    async def run(self) -> None:
        """For ever."""
        async with aiohttp.ClientSession(timeout=PATIENCE) as session:
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
        """One more exposition."""
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
        well = samples[WRITABLE] == 1
        self.unwritten += not well
        if well:
            now_s = time.monotonic()
            self.longest_gap_s, self._well_s = max(self.longest_gap_s, now_s - self._well_s), now_s


def split(line: str) -> tuple[str, str, str]:
    """Name with labels, a space, and the value; nothing of a comment."""
    return ("", "", "") if line.startswith("#") else line.rpartition(" ")
