"""Milliseconds to render a scrape, compared to prometheus_client."""

import gzip
import random
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from typing import Any

from gputally.catalog.metric import Metric, MetricType, Row
from gputally.exposition.text_format import render
from labs.bench.figure import Figure
from labs.bench.timing import best_ms
from tests.golden.client import rendered

SERIES = (8_000, 50_000)
METRICS = 20
BORN_US = 1_760_000_000_000_000

Families = list[tuple[Metric[Any], list[Row]]]


def measure() -> Iterator[Figure]:
    """The fastest of several rounds, to exclude interference."""
    for count in SERIES:
        for name, openmetrics in (("text", False), ("openmetrics", True)):
            yield from _format(f"micro.exposition_{name}", families(count), count, openmetrics=openmetrics)


def _format(name: str, scrape: Families, count: int, *, openmetrics: bool) -> Iterator[Figure]:
    scrapes = cycle((scrape, [(metric, [_grown(row) for row in rows]) for metric, rows in scrape]))
    ours = best_ms(lambda: render(next(scrapes), openmetrics=openmetrics))
    theirs = best_ms(lambda: rendered(scrape, openmetrics=openmetrics), rounds=2)
    body = render(scrape, openmetrics=openmetrics)
    yield Figure(f"{name}_ms@{count}series", ours, "ms", "", "prometheus_client", theirs)
    yield Figure(f"{name}_mb@{count}series", len(body) / 1e6, "MB")
    yield Figure(f"{name}_gzip_ms@{count}series", best_ms(partial(gzip.compress, body, 1, mtime=0)), "ms")


def families(series: int) -> Families:
    """Counters by tier, tenant and model; values are arbitrary doubles from 0.1 to 10^9, like exact sums."""
    rng = random.Random(1)
    return [(_metric(number), [_row(index, rng) for index in range(series // METRICS)]) for number in range(METRICS)]


def _grown(row: Row) -> Row:
    """A counter that has grown: the text of what has not changed is used again."""
    return row._replace(value=row.value + 1)


def _metric(number: int) -> Metric[Any]:
    name = f"gputally_subject{number}_gpu_seconds_total"
    labels = ("tier", "tenant", "gpu_model")
    return Metric(name=name, kind=MetricType.COUNTER, help="GPU-seconds allocated.", labels=labels, rows=lambda _: ())


def _row(index: int, rng: random.Random) -> Row:
    labels = (f"tier-{index % 8}", f"tenant-{index // 8:04d}", "NVIDIA-H100-80GB-HBM3")
    return Row(labels, rng.random() * 10 ** rng.randint(0, 9), BORN_US)
