"""Killed at any moment and started again, the books end as if nothing had happened, and no counter ever falls."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from tests.fakes.bookkeeping import outcome, run_accounting
from tests.fakes.stream import stream

ROOT = Path(__file__).parents[3]


def test_after_kills_at_random_moments_the_ledger_equals_that_of_an_undisturbed_run(tmp_path: Path) -> None:
    campaign(tmp_path, seed=1, pods=900, kills=12)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2, 7))
def test_after_a_hundred_kills_the_ledger_equals_that_of_an_undisturbed_run(tmp_path: Path, seed: int) -> None:
    campaign(tmp_path, seed=seed, pods=4000, kills=100)


def campaign(folder: Path, *, seed: int, pods: int, kills: int) -> None:
    asyncio.run(run_accounting(folder / "undisturbed.db", stream(seed, pods), Random(seed)))

    published, killed = disturbed(folder / "disturbed.db", seed=seed, pods=pods, kills=kills)

    assert killed == kills, "the stream ended too early to prove anything"
    assert falls(published) == []
    assert outcome(folder / "disturbed.db") == outcome(folder / "undisturbed.db")


def disturbed(path: Path, *, seed: int, pods: int, kills: int) -> tuple[list[dict[str, float]], int]:
    """What all processes published, in order, and how many were killed; the last one may end by itself."""
    chance, published, killed = Random(seed), list[dict[str, float]](), 0
    while True:
        command = [sys.executable, "-m", "tests.fakes.bookkeeping", str(path), str(seed), str(pods)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            first = process.stdout.readline()
            timer = threading.Timer(chance.uniform(0, 0.1), process.kill)
            if killed < kills:
                timer.start()
            published += (json.loads(line) for line in (first, *process.stdout) if line.endswith("\n"))
            timer.cancel()
        killed += process.returncode == -signal.SIGKILL
        if process.returncode == 0:
            return published, killed
        assert process.returncode == -signal.SIGKILL


def falls(published: list[dict[str, float]]) -> list[str]:
    """Where a value is lower than the one published before it, or missing."""
    return list(_falls(published))


def _falls(published: list[dict[str, float]]) -> Iterator[str]:
    for number, (before, after) in enumerate(pairwise(published)):
        for series, value in before.items():
            if after.get(series, -1) < value:
                yield f"scrape {number}: {series} fell from {value} to {after.get(series)}"
