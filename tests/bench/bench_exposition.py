"""Milliseconds to render a scrape, next to prometheus_client: `python -m tests.bench.bench_exposition`."""

import gzip
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from gputally.catalog.metric import Kind, Metric, Row
from gputally.export.text import render
from tests.golden.client import rendered

METRICS = 20
ROUNDS = 15
BORN_US = 1_760_000_000_000_000

Families = list[tuple[Metric[Any], list[Row]]]


def families(series: int) -> Families:
    """Counters over tier, tenant and model; values are arbitrary doubles from 0.1 to 10^9, as exact sums are."""
    rng = random.Random(1)
    return [(_metric(number), [_row(index, rng) for index in range(series // METRICS)]) for number in range(METRICS)]


def _metric(number: int) -> Metric[Any]:
    name = f"gputally_subject{number}_gpu_seconds_total"
    labels = ("tier", "tenant", "gpu_model")
    return Metric(name=name, kind=Kind.COUNTER, help="GPU-seconds allocated.", labels=labels, rows=lambda _: ())


def _row(index: int, rng: random.Random) -> Row:
    labels = (f"tier-{index % 8}", f"tenant-{index // 8:04d}", "NVIDIA-H100-80GB-HBM3")
    return Row(labels, rng.random() * 10 ** rng.randint(0, 9), BORN_US)


def best_ms(call: Callable[[], object]) -> float:
    """The fastest of some rounds: what the work costs when nothing disturbs it."""
    return min(_elapsed_ms(call) for _ in range(ROUNDS))


def _elapsed_ms(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def report(series: int) -> str:
    """A line per format: ours, the client's (building its families included), the ratio, the size, and gzip."""
    return "\n".join(_line(families(series), openmetrics=openmetrics) for openmetrics in (False, True))


def _line(scrape: Families, *, openmetrics: bool) -> str:
    ours = best_ms(lambda: render(scrape, openmetrics=openmetrics))
    theirs = best_ms(lambda: rendered(scrape, openmetrics=openmetrics))
    body = render(scrape, openmetrics=openmetrics)
    series = sum(len(rows) for _, rows in scrape)
    return (
        f"{series:6} series  {'OpenMetrics' if openmetrics else 'text':11}  {ours:6.2f} ms  "
        f"prometheus_client {theirs:8.2f} ms  x{theirs / ours:.1f}  {len(body) / 1e6:.2f} MB  {_gzip(body)}"
    )


def _gzip(body: bytes) -> str:
    return "  ".join(map(partial(_compression, body), (1, 6)))


def _compression(body: bytes, level: int) -> str:
    ms = best_ms(lambda: gzip.compress(body, level, mtime=0))
    return f"gzip -{level} {ms:.1f} ms {len(gzip.compress(body, level)) / 1e3:.0f} kB"


if __name__ == "__main__":
    for series in (8_000, 50_000):
        sys.stdout.write(f"{report(series)}\n")
