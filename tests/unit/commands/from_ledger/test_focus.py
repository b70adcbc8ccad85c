"""`gputally report --output focus` adds up to the report, hour by hour."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.ledger.open import open_reader
from gputally.ledger.records import AllocatedTime, Window
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.periods import month_of
from gputally.model.units import GPU, GPU_HOUR, US_PER_HOUR, to_datetime
from gputally.reports.focus import Account, Charge, focus_rows, read_charges
from gputally.reports.query import ReportQuery
from gputally.reports.time_dimensions import Calendar
from gputally.reports.windows import days_window
from tests.conftest import Golden
from tests.contract.records import PRICE, step
from tests.unit.commands.from_ledger.test_report import ACCOUNTED, PODS
from tests.unit.commands.sample import CLUSTER, Runner

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


class OfOnePod:
    """A reader of a pod that has one GPU for ever."""

    def allocated(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[AllocatedTime]:
        return [
            AllocatedTime(labels=("x",) * len(by), price=PRICE, gpu_time=(end - start) * GPU, period=period)
            for period, (start, end) in enumerate(pairwise((window.start_us, *cuts, window.end_us)))
        ]


@given(
    month=st.dates(date(2014, 1, 1), date(2037, 12, 1)),  # as long as there has been Kubernetes
    zone=st.sampled_from(
        ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe"]
    ),
)
def test_a_month_of_a_zone_has_one_billing_period_and_all_of_its_hours_once(month: date, zone: str) -> None:
    calendar = Calendar(ZoneInfo(zone))
    window = days_window(month_of(month), calendar.zone)
    query = ReportQuery(window=window, by=(), calendar=calendar)
    charges = read_charges(OfOnePod(), query)  # type: ignore[arg-type] # only what is read
    found = list(focus_rows(charges, Account("c", calendar.zone, "1.2")))

    start, end = (f"{to_datetime(us):%Y-%m-%dT%H:%M:%SZ}" for us in window)
    assert {(row["BillingPeriodStart"], row["BillingPeriodEnd"]) for row in found} == {(start, end)}
    hours = [(row["ChargePeriodStart"], row["ChargePeriodEnd"]) for row in found]
    assert [start, *(after for _, after in hours)] == [*(before for before, _ in hours), end]
    assert sum(Decimal(row["PricingQuantity"]) for row in found) == Decimal(window.end_us - window.start_us) / (
        US_PER_HOUR
    )


@given(st.lists(st.integers(min_value=1, max_value=10**18), min_size=1, max_size=40))
def test_quantities_add_up_to_their_rounded_sum(amounts: list[int]) -> None:
    def of_amounts() -> Iterator[Charge]:
        return (Charge(Window(0, US_PER_HOUR), LABELS, PRICE, amount) for amount in amounts)

    found = [Decimal(row["PricingQuantity"]) for row in focus_rows(of_amounts(), Account("c", UTC, "1.2"))]

    assert sum(found) == Decimal(round(Fraction(sum(amounts) * 10**12, GPU_HOUR))).scaleb(-12)
