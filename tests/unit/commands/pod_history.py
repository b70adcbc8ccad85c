"""Six hours of pods in a Prometheus, and how tests import them."""

import csv
from decimal import Decimal
from pathlib import Path
from typing import Any

from gputally.ledger.open import reading_once
from gputally.ledger.records import AllocationRecord, Window
from tests.fakes.kube_state import LifeOfPod
from tests.fakes.prometheus_history import FakePrometheus
from tests.unit.commands.sample import Result, Runner

T0 = 1_759_276_800
"""2025-10-01."""
HOURS = 6
INTERVAL = 30
PHASE = 7
"""Scrapes are 7 s after the full half minute."""
WINDOW = "2025-10-01/2025-10-01T06:00"
SCRAPES = [float(T0 + PHASE + INTERVAL * number) for number in range(HOURS * 3600 // INTERVAL)]
LAST = SCRAPES[-1]
PRICES = """
kind: PriceBook
currency: USD
basis: node
rules:
  - match: {gpu_model: A100}
    prices: [{price: 2.00, effective_from: always}]
  - match: {gpu_model: H100}
    prices: [{price: 4.00, effective_from: always}]
"""
CONFIG = """
kind: Configuration
tiers:
  rules:
    - {tier: gold, class: "prod-.*"}
    - {tier: batch}
tenants:
  rules:
    - {from: pod-label, key: team}
    - {from: namespace-label, key: example.com/costCentre}
    - {from: namespace}
"""


def life(uid: str, **fields: Any) -> LifeOfPod:  # noqa: ANN401 - those of LifeOfPod
    """A pod of 8 GPUs from 1:00:05 to 2:00:04, which succeeded; times in `fields` are seconds since T0."""
    times = {"created": 3600, "scheduled": 3605, "started": 3610, "ended": 7204, "removed": 10_000} | {
        name: value
        for name, value in fields.items()
        if name in ("created", "scheduled", "accepted", "started", "ended", "removed", "deleting")
    }
    more = {name: value for name, value in fields.items() if name not in times}
    absolute = {name: None if value is None else T0 + value for name, value in times.items()}
    return LifeOfPod(uid=uid, **{"phase": "Succeeded", "gpus": 8} | more | absolute)


def running(uid: str, **fields: Any) -> LifeOfPod:  # noqa: ANN401 - those of LifeOfPod
    return life(uid, **{"phase": "", "ended": None, "removed": None} | fields)


def vanishing(uid: str, at: int, **fields: Any) -> LifeOfPod:  # noqa: ANN401 - those of LifeOfPod
    """Deleted at that second; no scrape saw its containers end."""
    return life(uid, **{"phase": "", "ended": at, "removed": at} | fields)


def imported(run: Runner, history: FakePrometheus, ledger: Path, *flags: str | Path) -> Result:
    flags = flags if "--window" in flags else ("--window", WINDOW, *flags)
    return run("import", history.url, "--format", "prometheus", "--ledger", ledger, *flags)


def allocations(ledger: Path) -> dict[str, AllocationRecord]:
    with reading_once(str(ledger)) as reader:
        return {each.pod_uid: each for each in reader.allocations(Window(0, 1 << 62))}


def rows(run: Runner, ledger: Path, *by: str) -> list[dict[str, str]]:
    out = run("report", "--ledger", ledger, "--window", "all", "--output", "csv", "--by", ",".join(by)).out
    return list(csv.DictReader(out.splitlines()))


def hours(run: Runner, ledger: Path, by: str = "tenant") -> dict[str, Decimal]:
    return {row[by]: Decimal(row["gpu_hours"]) for row in rows(run, ledger, by)}


def us(*seconds: int | None) -> list[int | None]:
    return [None if each is None else (T0 + each) * 1_000_000 for each in seconds]
