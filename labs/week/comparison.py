"""Compares what the board shows of the week with the ledger, which has each preemption."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hack.pictures.variables import Window
from hack.prometheus import Prometheus
from tests.monitoring_e2e.panels import boards

BOARD: Final = "preemption"
TOLERANCE: Final = 0.01
"""Of a figure: Prometheus extrapolates to the ends of the window."""
Figures = Mapping[tuple[str, ...], float]


def compared(api: Prometheus, ledger: Path, window: Window) -> Iterator[tuple[str, bool]]:
    """A line for each figure, and whether the board is wrong."""
    rows = _of_ledger("preemptions", ledger, window)["rows"]
    cost = sum(float(row["cost"]) for row in _of_ledger("report", ledger, window)["rows"])
    yield f"\n{'figure':<64}{'board':>14}{'ledger':>14}{'off':>11}", False
    for name, column, labels, truth in _truths(rows, cost):
        shown = boards().values(api, BOARD, name, window, column=column, by=labels)
        for key in sorted(shown.keys() | truth.keys()):
            yield _line(" ".join((name, column, *key)), shown.get(key, 0), truth.get(key, 0))


def _truths(rows: list[dict[str, Any]], cost: float) -> Iterator[tuple[str, str, tuple[str, ...], Figures]]:
    """Title of the panel, head of the column, labels, and the figures by these labels."""
    lost_cost = sum(_cost(row) for row in rows)
    yield "Lost GPU-hours", "", (), {(): sum(map(_lost, rows))}
    yield "Cost of lost work", "", ("currency",), {("USD",): lost_cost}
    yield "Share of all GPU cost", "", ("currency",), {("USD",): lost_cost / cost}
    yield "Preemptions", "", (), {(): len(rows)}
    victim, pair = ("victim_tenant", "victim_tier"), ("preemptor_tier", "victim_tier")
    yield "Who paid", "Lost GPU-hours", victim, _sums(rows, ("tenant", "tier"), _lost)
    yield (
        "Who paid",
        "Cost",
        (*victim, "currency"),
        {(*key, "USD"): value for key, value in _sums(rows, ("tenant", "tier"), _cost).items()},
    )
    yield "Who paid", "Preemptions", victim, _sums(rows, ("tenant", "tier"), lambda _: 1)
    yield "Who preempted whom", "Preemptions", pair, _sums(rows, ("preemptor_tier", "tier"), lambda _: 1)
    yield "Who preempted whom", "Preempted GPUs", pair, _sums(rows, ("preemptor_tier", "tier"), lambda row: row["gpus"])


def _sums(rows: list[dict[str, Any]], by: tuple[str, ...], amount: Any) -> Figures:  # noqa: ANN401 - a number of a row
    found: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        found[tuple(row[name] for name in by)] += amount(row)
    return found


def _lost(row: Mapping[str, Any]) -> float:
    return float(row["lost_gpu_hours"])


def _cost(row: Mapping[str, Any]) -> float:
    return float(sum(row["lost_costs"].values()))


def _line(name: str, shown: float, truth: float) -> tuple[str, bool]:
    off = abs(shown - truth) / truth if truth else abs(shown)
    return f"{name:<64}{shown:14.4f}{truth:14.4f}{off:+11.3%}", off > TOLERANCE


def _of_ledger(command: str, ledger: Path, window: Window) -> dict[str, Any]:
    start, end = (datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M") for moment in window[:2])
    arguments = (command, "--ledger", str(ledger), "--window", f"{start}/{end}", "--output", "json")
    answer = subprocess.run([sys.executable, "-m", "gputally", *arguments], check=True, capture_output=True)
    found: dict[str, Any] = json.loads(answer.stdout)
    return found
