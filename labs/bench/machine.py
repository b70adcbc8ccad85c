"""Describes the machine, and measures its load from other processes."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from labs.bench.figure import Figure
from labs.bench.load import say

QUIET_CORES = 0.1
SAMPLE_SECONDS = 0.5


def describe() -> Iterator[Figure]:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    yield Figure("machine.cores", len(os.sched_getaffinity(0)), "cores")
    yield Figure("machine.memory_gib", pages / 2**30, "GiB")
    yield Figure("machine.load_before", os.getloadavg()[0], "")


def rest(pods: int, *, within: float = 20) -> Figure:
    """Wait up to `within` seconds until the machine is idle; return the cores kept busy by other processes."""
    until = time.monotonic() + within
    busy = busy_cores()
    while busy > QUIET_CORES and time.monotonic() < until:
        busy = busy_cores()
    if busy > QUIET_CORES:
        say(f"  others keep {busy:.1f} cores busy: the figures at {pods} pods are disturbed")
    return Figure(f"machine.busy@{pods}", busy, "cores")


def busy_cores() -> float:
    """Cores in use over the sample period."""
    idle, total = _ticks()
    time.sleep(SAMPLE_SECONDS)
    idle_later, total_later = _ticks()
    return (1 - (idle_later - idle) / (total_later - total)) * (os.cpu_count() or 1)


def _ticks() -> tuple[int, int]:
    ticks = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)
