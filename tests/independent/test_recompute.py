"""A month recomputed in plain Python, without gputally, equals report, FOCUS file and closed period."""

import csv
import io
import json
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from gputally.ledger.open import open_reader
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.reports.windows import parse_window
from tests.core.closings import close
from tests.unit.commands.sample import Runner

PROGRAM = Path(__file__).with_name("recompute.py")
FIRST, AFTER = "2026-10-01", "2026-11-01"
MULTIPLIERS = {"low": "0.35", "high": "1.25"}
PRICES = [
    ("A100", "1970-01-01", "2.0412"),
    ("A100", "2026-10-13T09:30:00+00:00", "1.99999999"),
    ("H100", "1970-01-01", "4.10"),
    ("H100", "2026-10-20", "3.75"),
]
"""Another model, L40S, has no price."""
PRICE_BOOK = """
kind: PriceBook
currency: EUR
basis: node
tiers: {low: 0.35, high: 1.25}
rules:
  - match: {gpu_model: A100}
    prices: [{effective_from: always, price: 2.0412}, {effective_from: "2026-10-13T09:30:00Z", price: 1.99999999}]
  - match: {gpu_model: H100}
    prices: [{effective_from: always, price: 4.10}, {effective_from: 2026-10-20, price: 3.75}]
"""
EXPORT = """
SELECT tenant, tier, gpu_model, quantity, start_us, until_us FROM allocation_segments WHERE quantity > 0
"""
Bill = dict[str, tuple[Fraction, Fraction]]
"""GPU-hours and cost by tenant."""


def jobs(seed: int) -> Iterator[str]:
    """Jobs of three months, in parts of GPUs; some have not ended."""
    draw = random.Random(seed)
    yield "id,tenant,qos,gpu_type,gpu_milli,submit,start,end,status"
    for number in range(1500):
        start = datetime(2026, 9, 1, tzinfo=UTC) + timedelta(seconds=draw.randrange(90 * 86_400))
        end = start + timedelta(seconds=int(draw.expovariate(1 / 40_000)))
        tenant, tier = draw.choice(["red", "blue", "müller"]), draw.choice(["low", "high", "mid"])
        model, share = draw.choice(["A100", "H100", "L40S"]), draw.randrange(1, 9000)
        ended, status = (end.isoformat(), "Succeeded") if draw.random() < 0.98 else ("", "Running")
        submit = start.isoformat()
        yield f"{number},{tenant},{tier},{model},{share},{submit},{submit},{ended},{status}"


@pytest.fixture
def history(run: Runner, tmp_path: Path) -> Path:
    """A ledger of all jobs, up to December."""
    book, path = tmp_path / "prices.yaml", tmp_path / "history.db"
    book.write_text(PRICE_BOOK)
    (tmp_path / "jobs.csv").write_text("\n".join(jobs(1)) + "\n")
    flags = ("--prices.file", book, "--until", "2026-12-05")
    found = run("import", tmp_path / "jobs.csv", "--ledger", path, *flags)
    assert (found.status, found.out[:15]) == (0, "1,500 jobs new,"), found
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


def recomputed(run: Runner, ledger: Path, folder: Path) -> Bill:
    exported, prices = folder / "allocations.csv", folder / "prices.json"
    exported.write_text(run("ledger", "query", "--ledger", ledger, "--output", "csv", EXPORT).out)
    found = [dict(zip(("gpu_model", "since", "price"), each, strict=True)) for each in PRICES]
    prices.write_text(json.dumps({"multipliers": MULTIPLIERS, "prices": found}))
    command = [sys.executable, "-I", str(PROGRAM), str(exported), str(prices), FIRST, AFTER]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {tenant: (Fraction(hours), Fraction(cost)) for tenant, (hours, cost) in json.loads(out).items()}


def reported(run: Runner, ledger: Path) -> tuple[Bill, Decimal]:
    """The lines of the report with nine decimals, and its total cost."""
    flags = ("--window", "2026-10", "--output", "json", "--decimals", "9")
    document = json.loads(run("report", "--ledger", ledger, *flags).out, parse_float=Decimal)
    lines = {each["tenant"]: (Fraction(each["gpu_hours"]), Fraction(each["cost"])) for each in document["rows"]}
    [total] = document["totals"]
    return lines, total["cost"]


def charged(run: Runner, ledger: Path) -> dict[str, Decimal]:
    """The cost by tenant in the FOCUS file."""
    sums = defaultdict[str, Decimal](Decimal)
    out = run("report", "--ledger", ledger, "--window", "2026-10", "--output", "focus").out
    for row in csv.DictReader(io.StringIO(out)):
        sums[row["SubAccountId"]] += Decimal(row["EffectiveCost"])
    return dict(sums)


def closed(run: Runner, ledger: Path, name: str) -> dict[int, Bill]:
    """What is stored of a closed period, by the number of the period that it belongs to; exact."""
    document = json.loads(run("periods", name, "--ledger", ledger, "--output", "json").out)
    sums = defaultdict[int, dict[str, tuple[Fraction, Fraction]]](dict)
    for line in document["lines"]:
        hours = Fraction(int(line["gpu_time"]), 3600 * 10**12)
        before = sums[line["of_period"]].get(line["tenant"], (Fraction(), Fraction()))
        cost = hours * Fraction(line["per_gpu_hour"] or "0")
        sums[line["of_period"]][line["tenant"]] = before[0] + hours, before[1] + cost
    return dict(sums)


def test_a_month_recomputed_without_gputally_equals_all_that_gputally_says(
    run: Runner, history: Path, tmp_path: Path
) -> None:
    bill = recomputed(run, history, tmp_path)
    with SqliteLedger(history) as ledger, open_reader(str(history)) as reader:
        now_us = reader.state().accounted_us
        close(ledger, reader, parse_window("2026-10", now_us=now_us, zone=UTC), name="2026-10")

    assert len(bill) == 3
    assert closed(run, history, "2026-10") == {1: bill}
    lines, total = reported(run, history)
    assert lines.keys() == bill.keys()
    differences = [abs(a - b) for tenant in bill for a, b in zip(bill[tenant], lines[tenant], strict=True)]
    assert max(differences) < Fraction(1, 10**9)
    exact = sum((cost for _, cost in bill.values()), Fraction())
    assert total == Decimal(round(exact * 10**9)).scaleb(-9)
    charges = charged(run, history)
    assert charges.keys() == bill.keys()
    assert max(abs(Fraction(charges[tenant]) - cost) for tenant, (_, cost) in bill.items()) < Fraction(1, 10**8)
    assert abs(Fraction(sum(charges.values())) - exact) < Fraction(1, 10**9)


def test_after_late_changes_period_plus_corrections_equal_a_new_recomputation(
    run: Runner, history: Path, tmp_path: Path
) -> None:
    """A tenth of the jobs turn out to have ended otherwise after October was closed."""
    before = recomputed(run, history, tmp_path)
    with SqliteLedger(history) as ledger, open_reader(str(history)) as reader:
        now_us = reader.state().accounted_us
        close(ledger, reader, parse_window("2026-10", now_us=now_us, zone=UTC), name="2026-10")
    revised = tmp_path / "revised.csv"
    changed = [row.replace(",low,", ",high,") if number % 10 == 3 else row for number, row in enumerate(jobs(1))]
    revised.write_text("\n".join(changed) + "\n")
    flags = ("--prices.file", tmp_path / "prices.yaml", "--until", "2026-12-05")
    run("import", revised, "--ledger", history, *flags)
    with SqliteLedger(history) as ledger, open_reader(str(history)) as reader:
        close(ledger, reader, parse_window("2026-11", now_us=now_us, zone=UTC), name="2026-11")

    after = recomputed(run, history, tmp_path)
    first, corrections = closed(run, history, "2026-10")[1], closed(run, history, "2026-11")[1]
    assert first == before != after
    assert {
        tenant: tuple(map(Fraction.__add__, line, corrections.get(tenant, (Fraction(), Fraction()))))
        for tenant, line in first.items()
    } == after
