"""`gputally report --output focus` adds up to the report, hour by hour."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite.sqlite_ledger import SqliteLedger
from gputally.model.units import GPU_HOUR
from gputally.report.focus import Account, Charge, focus_rows
from tests.conftest import Golden
from tests.contract.records import PRICE, step
from tests.unit.ledger_commands.sample import CLUSTER, Runner
from tests.unit.ledger_commands.test_report import ACCOUNTED, PODS

LABELS = dict.fromkeys(
    ("namespace", "name", "node", "job_kind", "job", "outcome", "tier", "tenant", "queue", "gpu_model", "pool"), "x"
)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(*PODS, at=ACCOUNTED))
    return path


def charges(run: Runner, ledger: Path, *flags: str) -> list[dict[str, str]]:
    out = run("report", "--ledger", ledger, "--window", "all", "--output", "focus", *flags).out
    return list(csv.DictReader(io.StringIO(out)))


def test_a_focus_file_is_as_recorded(run: Runner, ledger: Path, golden: Golden) -> None:
    out = run("report", "--ledger", ledger, "--window", "all", "--output", "focus", "--where", "tenant=blue").out

    golden.check("charges.focus.csv", out)


def test_the_charges_add_up_to_the_report(run: Runner, ledger: Path) -> None:
    """By tenant and in total, to the last decimal that the report shows."""
    found = defaultdict[str, Decimal](Decimal)
    for row in charges(run, ledger):
        found[row["SubAccountId"]] += Decimal(row["EffectiveCost"])
    out = run("report", "--ledger", ledger, "--window", "all", "--by", "tenant", "--output", "csv").out
    reported = {row["tenant"]: Decimal(row["cost"]) for row in csv.DictReader(io.StringIO(out))}

    assert {tenant: round(cost, 6) for tenant, cost in found.items()} == reported
    assert len(reported) == 3


def test_each_charge_lies_in_its_hour_and_month(run: Runner, ledger: Path) -> None:
    """The GPU-hours of each hour equal those of the segments in it."""
    found = defaultdict[datetime, Decimal](Decimal)
    for row in charges(run, ledger):
        start, end = (datetime.fromisoformat(row[f"ChargePeriod{edge}"]) for edge in ("Start", "End"))
        assert (end - start, row["BillingPeriodStart"], row["BillingPeriodEnd"]) == (
            *(timedelta(hours=1), "1970-01-01T00:00:00Z", "1970-02-01T00:00:00Z"),
        )
        found[start] += Decimal(row["ConsumedQuantity"])
    with open_reader(str(ledger)) as reader:
        state = reader.state()
        for start, quantity in found.items():
            from_us = int(start.timestamp()) * 10**6
            window = Window(max(from_us, state.accounting_start_us), from_us + 3600 * 10**6)
            exact = sum(each.gpu_time for each in reader.allocated(window, ()) if each.price)
            assert round(quantity, 9) == round(Decimal(exact) / GPU_HOUR, 9)
    assert len(found) == 30


def test_unpriced_time_is_no_charge_and_is_named(run: Runner, ledger: Path) -> None:
    result = run("report", "--ledger", ledger, "--window", "all", "--output", "focus", "--where", "tier=high")

    assert (result.status, result.out) == (0, "")
    assert result.err == "gputally: 0 charges; 9.00 GPU-hours without a price are not in the file\n"


def test_versions_differ_in_the_names_of_the_provider(run: Runner, ledger: Path) -> None:
    columns = {each: set(charges(run, ledger, "--focus-version", each)[0]) for each in ("1.2", "1.3", "1.4")}

    old, new = {"ProviderName", "PublisherName"}, {"ServiceProviderName", "HostProviderName"}
    assert columns["1.3"] - columns["1.2"] == new
    assert columns["1.3"] - columns["1.4"] == old
    assert columns["1.2"] < columns["1.3"] > columns["1.4"]


def test_a_comparison_has_no_charges(run: Runner, ledger: Path) -> None:
    result = run("report", "--ledger", ledger, "--window", "all", "--compare", "previous", "--output", "focus")

    assert (result.status, result.out) == (2, "")
    assert result.err == "gputally: --compare: cannot be combined with --output focus; omit one of them\n"


@given(st.lists(st.integers(min_value=1, max_value=10**18), min_size=1, max_size=40))
def test_quantities_add_up_to_their_rounded_sum(amounts: list[int]) -> None:
    def of_amounts() -> Iterator[Charge]:
        return (Charge(0, LABELS, PRICE, amount) for amount in amounts)

    found = [Decimal(row["PricingQuantity"]) for row in focus_rows(of_amounts(), Account("c", "1.2"))]

    assert sum(found) == Decimal(round(Fraction(sum(amounts) * 10**12, GPU_HOUR))).scaleb(-12)
