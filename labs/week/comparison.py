"""Compares what the board shows of the week with the ledger, which has each preemption."""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median
from typing import Any, Final, NamedTuple

from hack.pictures.variables import Window
from hack.prometheus import Prometheus
from tests.monitoring_e2e.panels import boards

BOARD: Final = "preemption"
TOLERANCE: Final = 0.01
"""Of a figure: Prometheus extrapolates to the ends of the window."""
Row = Mapping[str, Any]
"""Of a command's JSON."""


class Shown(NamedTuple):
    """A panel, the head of its column, its labels, and what the ledger has by them."""

    panel: str
    column: str
    labels: tuple[str, ...]
    truth: Mapping[tuple[str, ...], float]
    is_estimated: bool = False
    """From histogram buckets, so that it may deviate."""
    is_bars: bool = False
    """Shown as bars, which must add up."""

    def values(self, api: Prometheus, window: Window) -> Mapping[tuple[str, ...], float]:
        """What the panel shows by the labels."""
        if not self.is_bars:
            return boards().values(api, BOARD, self.panel, window, column=self.column, by=self.labels)
        series = boards().ask(api, BOARD, self.panel, window).series
        return {
            tuple(each.labels[name] for name in self.labels): sum(value for _, value in each.points) for each in series
        }

    def keys(self, values: Mapping[tuple[str, ...], float]) -> list[tuple[str, ...]]:
        """The figures to compare; panels that are not tables or numbers also show what the truth does not have."""
        return sorted(self.truth if self.is_estimated or self.is_bars else values.keys() | self.truth.keys())


def compared(api: Prometheus, ledger: Path, window: Window) -> Iterator[tuple[str, bool]]:
    """A line for each figure, and whether the board is wrong."""
    rows = _of_ledger("preemptions", ledger, window)
    cost = sum(float(row["cost"]) for row in _of_ledger("report", ledger, window))
    jobs = _of_ledger("report", ledger, window, "--by", "tenant,tier,job_outcome")
    yield f"\n{'figure':<70}{'board':>12}{'ledger':>12}{'off':>10}", False
    for each in (*_cost_of_all(rows, cost), *_by_tenant(rows), *_by_tier(rows), _jobs(jobs), *_durations(rows)):
        values = each.values(api, window)
        for key in each.keys(values):
            line, is_off = _line(" ".join((each.panel, each.column, *key)), values.get(key, 0), each.truth.get(key, 0))
            yield line, is_off and not each.is_estimated


def _cost_of_all(rows: Sequence[Row], cost: float) -> Iterator[Shown]:
    lost_cost = sum(_cost(row) for row in rows)
    yield Shown("Lost GPU-hours", "", (), {(): sum(map(_lost, rows))})
    yield Shown("Cost of lost work", "", ("currency",), {("USD",): lost_cost})
    yield Shown("Share of allocated cost", "", ("currency",), {("USD",): lost_cost / cost})
    yield Shown("Preemptions", "", (), {(): len(rows)})
    yield Shown("Disrupted pods by cause", "", ("cause",), _sums(rows, ("cause",), _one), is_bars=True)


def _by_tenant(rows: Sequence[Row]) -> Iterator[Shown]:
    of, victim = ("tenant", "tier"), ("victim_tenant", "victim_tier")
    costs = {(*key, "USD"): value for key, value in _sums(rows, of, _cost).items()}
    yield Shown("Who paid", "Lost GPU-hours", victim, _sums(rows, of, _lost))
    yield Shown("Who paid", "Cost", (*victim, "currency"), costs)
    yield Shown("Who paid", "Preemptions", victim, _sums(rows, of, _one))


def _by_tier(rows: Sequence[Row]) -> Iterator[Shown]:
    title, tier = "Tiers: who gained and who lost", ("tier",)
    yield Shown(title, "Pods preempted for it", tier, _sums(rows, ("preemptor_tier",), _one))
    yield Shown(title, "GPUs preempted for it", tier, _sums(rows, ("preemptor_tier",), _gpus))
    yield Shown(title, "Pods lost", tier, _sums(rows, tier, _one))
    yield Shown(title, "GPUs lost", tier, _sums(rows, tier, _gpus))
    of, pair = ("preemptor_tier", "tier"), ("preemptor_tier", "victim_tier")
    yield Shown("Who preempted whom", "Preemptions", pair, _sums(rows, of, _one))
    yield Shown("Who preempted whom", "Preempted GPUs", pair, _sums(rows, of, _gpus))


def _jobs(rows: Sequence[Row]) -> Shown:
    early = [row for row in rows if row["job_outcome"].endswith("_early")]
    of = ("tenant", "tier", "job_outcome")
    return Shown("Jobs ended early", "", ("tenant", "tier", "outcome"), _sums(early, of, lambda row: row["jobs"]))


def _durations(rows: Sequence[Row]) -> Iterator[Shown]:
    steps: dict[str, list[float]] = {
        step: sorted(row[f"{step}_seconds"] for row in rows if row[f"{step}_seconds"] is not None)
        for step in ("stop", "replace")
    }
    for column, truth in (("Mean", mean), ("p50", median), ("p90", _nine_tenths), ("Max", max)):
        durations: Mapping[tuple[str, ...], float] = {(step,): truth(found) for step, found in steps.items() if found}
        yield Shown("Duration of preemption steps", column, ("step",), durations, is_estimated=True)


def _nine_tenths(ordered: Sequence[float]) -> float:
    return ordered[len(ordered) * 9 // 10]


def _sums(rows: Sequence[Row], by: tuple[str, ...], amount: Callable[[Row], float]) -> Mapping[tuple[str, ...], float]:
    found = defaultdict[tuple[str, ...], float](float)
    for row in rows:
        found[tuple(row[name] for name in by)] += amount(row)
    return found


def _one(_: Row) -> float:
    return 1


def _gpus(row: Row) -> float:
    return float(row["gpus"])


def _lost(row: Row) -> float:
    return float(row["lost_gpu_hours"])


def _cost(row: Row) -> float:
    return float(sum(row["lost_costs"].values()))


def _line(name: str, shown: float, truth: float) -> tuple[str, bool]:
    off = (shown - truth) / truth if truth else shown
    return f"{name:<70}{shown:12.4f}{truth:12.4f}{off:+10.3%}", abs(off) > TOLERANCE


def _of_ledger(command: str, ledger: Path, window: Window, *more: str) -> list[Row]:
    """The rows that a command prints."""
    start, end = (datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M") for moment in window[:2])
    arguments = (command, "--ledger", str(ledger), "--window", f"{start}/{end}", "--output", "json", *more)
    answer = subprocess.run([sys.executable, "-m", "gputally", *arguments], check=True, capture_output=True)
    found: list[Row] = json.loads(answer.stdout)["rows"]
    return found
