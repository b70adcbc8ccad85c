"""Time from process launch until ready, compared to only reading the same list."""

import compileall
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import gputally
from labs.bench.figure import Figure, stated
from labs.bench.server import ApiServer
from labs.bench.subject import Aggregator, MeasurementFailed

DRAIN = Path(__file__).with_name("drain.py")
RUNS = 3
STREAMING = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
LISTS = {"list": "", "stream": STREAMING}
"""The aggregator's list request, and the streaming alternative."""


class Drain(NamedTuple):
    """Seconds of a drain since process launch and since its first request, and its bytes."""

    launched_s: float
    requested_s: float
    size: int


def measure(server: ApiServer, aggregator: Aggregator, pods: int) -> Iterator[Figure]:
    """Measure starts and restarts. The aggregator is left running, started without a ledger."""
    compileall.compile_dir(Path(gputally.__file__).parent, quiet=1)  # an installed package is compiled too
    drains: dict[str, list[Drain]] = {how: [] for how in LISTS}
    ready, restarted = [], []
    for _ in range(RUNS):
        for how in LISTS:
            drains[how].append(drained(server, how))
        ready.append(aggregator.start_fresh())
        restarted.append(aggregator.restart())
    aggregator.start_fresh()
    floor = median(drain.launched_s for drain in drains["list"])
    goal = stated("<= 2.0", pods)
    yield Figure(f"start.ready_s@{pods}", median(ready), "s", goal, "bare drain", floor)
    yield Figure(f"start.ready_min_s@{pods}", min(ready), "s")
    yield Figure(f"start.ready_over_drain@{pods}", median(ready) / floor, "x", stated("<= 1.3", pods))
    yield Figure(f"start.restart_s@{pods}", median(restarted), "s")
    yield Figure(f"start.restart_over_start@{pods}", median(restarted) / median(ready), "x", stated("<= 0.5", pods))
    yield Figure(f"start.imports_s@{pods}", median(imported() for _ in range(RUNS)), "s")
    for how, measured in drains.items():
        yield from _floors(f"start.drain_{how}", measured, pods)


def _floors(name: str, drains: Sequence[Drain], pods: int) -> Iterator[Figure]:
    yield Figure(f"{name}_s@{pods}", median(drain.launched_s for drain in drains), "s")
    yield Figure(f"{name}_min_s@{pods}", min(drain.launched_s for drain in drains), "s")
    yield Figure(f"{name}_from_request_s@{pods}", median(drain.requested_s for drain in drains), "s")
    yield Figure(f"{name}_mb@{pods}", drains[-1].size / 1e6, "MB")


def imported() -> float:
    """Seconds from the launch of a Python process until it has imported the aggregator."""
    launched = time.monotonic()
    subprocess.run([sys.executable, "-c", "import gputally.aggregator.aggregator"], check=True)
    return time.monotonic() - launched


def drained(server: ApiServer, how: str) -> Drain:
    """Drain the list of all pods once."""
    url = f"{server.url}/api/v1/pods?{LISTS[how]}"
    launched = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(DRAIN), url, str(server.ca_file)],
        input=server.token("gputally"),
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.monotonic() - launched
    if done.returncode:
        raise MeasurementFailed(f"the drain failed:\n{done.stderr}")
    size, requested_s = done.stdout.split()
    return Drain(took, float(requested_s), int(size))
