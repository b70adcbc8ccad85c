"""Backfills Prometheus: promtool converts OpenMetrics with timestamps to TSDB blocks."""

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from labs.history.window import BLOCK_S
from tests.prometheus.tools import promtool


class Contents(NamedTuple):
    """Number of blocks and samples in a folder, and their size on disk."""

    blocks: int
    samples: int
    bytes: int


def build(files: Iterable[Path], data: Path, *, labels: Mapping[str, str]) -> float:
    """Add the samples of `files` with these target labels, and delete each file. Returns the seconds of promtool.

    promtool reads a file once per block and once more, so a file should contain a single block.
    """
    data.mkdir(parents=True, exist_ok=True)
    options = [f"--label={name}={value}" for name, value in labels.items()]
    took = 0.0
    for file in files:
        started = time.perf_counter()
        span = f"--max-block-duration={BLOCK_S}s"
        promtool("tsdb", "create-blocks-from", "openmetrics", "--quiet", span, *options, file, data)
        took += time.perf_counter() - started
        file.unlink()
    return took


def record(rules: Iterable[Path], data: Path, *, url: str, span: tuple[int, int], step: int = 60) -> None:
    """Backfill the recording rules in the files `rules` in a span (s), as evaluated by the server at `url`.

    `data` may be the folder of that server, which loads new blocks within a minute or on restart.
    """
    start_s, end_s = span
    times = (f"--start={start_s}", f"--end={end_s}", f"--eval-interval={step}s")
    promtool("tsdb", "create-blocks-from", "rules", *times, f"--url={url}", f"--output-dir={data}", *rules)


def contents(data: Path) -> Contents:
    """The contents of a data folder."""
    stats = [json.loads(meta.read_text())["stats"] for meta in data.glob("*/meta.json")]
    size = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    return Contents(len(stats), sum(block["numSamples"] for block in stats), size)
