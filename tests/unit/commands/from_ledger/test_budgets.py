"""`gputally budgets` shows what reports show, a forecast from past days, and what it cannot know."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gputally.formatting.formats import FORMATS
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.conftest import Golden
from tests.contract.records import PRICE, pod, segment, step
from tests.unit.commands.sample import CLUSTER, Runner, names

HOUR = 3600
DAY = 86_400
ACCOUNTED = 40 * DAY + 6 * HOUR
"""10 February 1970, 06:00 UTC, a Tuesday."""
PRICES = """
kind: PriceBook
currency: CHF
basis: gpu
rules: [{id: all, match: {default: true}, price: 1, effective_from: always}]
"""
EURO = replace(PRICE, key="book/euro", currency="EUR")
PODS = [
    *(pod(f"red-{day}", segment(day * DAY, day * DAY + 10 * HOUR), job=f"j{day}") for day in range(1, 40)),
    pod("red-now", segment(40 * DAY, None), end_us=None, end_by=None, gap=None),
    pod("blue", segment(35 * DAY, 36 * DAY, tenant="blue", tier="high"), segment(36 * DAY, 37 * DAY, tenant="blue")),
    pod("free", segment(38 * DAY, 38 * DAY + 3 * HOUR, tenant="blue", price=None, tier="high")),
    pod("euro", segment(38 * DAY, 39 * DAY, tenant="green", price=EURO)),
]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(*PODS, at=ACCOUNTED))
    return path


class Budgets:
    """Runs the command with these lines of the section `budgets`."""

    def __init__(self, run: Runner, ledger: Path) -> None:
        self.run, self.ledger = run, ledger
        self.configuration, self.prices = ledger.with_name("config.yaml"), ledger.with_name("prices.yaml")
        self.prices.write_text(PRICES)

    def __call__(self, *lines: str, output: str = "json") -> Any:  # noqa: ANN401 - JSON or text
        self.configuration.write_text("\n".join(["kind: Configuration", "budgets:", *(f"  - {{{x}}}" for x in lines)]))
        files = ("--config.file", self.configuration, "--prices.file", self.prices)
        self.result = self.run("budgets", "--ledger", self.ledger, *files, "--output", output)
        assert self.result.status == 0, self.result.err
        return json.loads(self.result.out)["budgets"] if output == "json" else self.result.out


@pytest.fixture
def budgets(run: Runner, ledger: Path) -> Budgets:
    return Budgets(run, ledger)


@pytest.mark.parametrize(
    ("budget", "where"),
    [
        ("tenant: red", ["tenant=red"]),
        ('tenant: "*e*"', ["tenant=*e*"]),
        ("tenant: blue, tier: high", ["tenant=blue", "tier=high"]),
        ("tier: high", ["tier=high"]),
    ],
)
@pytest.mark.parametrize("period", ["week", "month", "quarter", "year"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_spent_is_what_a_report_of_the_same_period_says(
    budget: str, where: list[str], period: str, zone: str, budgets: Budgets
) -> None:
    scope = f"{budget}, period: {period}, time_zone: {zone}"
    money, hours = budgets(f"name: a, amount: 999, {scope}", f"name: b, gpu_hours: 999, {scope}")

    window = f"{money['start'][:10]}/{money['end'][:10]}"
    filters = [part for each in where for part in ("--where", each)]
    report = ("report", "--ledger", budgets.ledger, "--window", window, "--time-zone", zone, "--output", "json")
    totals = json.loads(budgets.run(*report, *filters).out)["totals"]
    assert money["spent"] == pytest.approx(sum(x["cost"] for x in totals if x["currency"] == "CHF"), abs=1e-9)
    assert hours["spent"] == pytest.approx(sum(x["gpu_hours"] for x in totals), abs=2e-6)
    assert money["unpriced_gpu_hours"] == sum(x["unpriced"] for x in totals)
    assert [(each["budget"], each["unit"]) for each in (money, hours)] == [("a", "CHF"), ("b", "GPU-hours")]


def test_the_forecast_goes_on_as_the_past_days_did(budgets: Budgets) -> None:
    """Nine days of 10 hours and 6 hours of today; still to come are 18 hours of today and 18 days."""
    [month] = budgets("tenant: red, period: month, gpu_hours: 250")

    assert month["spent"] == 9 * 10 - 10 + 10 + 6
    expected = 96 + 10 * (0.75 + 18)
    assert [month[each] for each in ("forecast", "forecast_lower", "forecast_upper")] == pytest.approx([expected] * 3)
    assert (month["status"], month["spent_percent"]) == ("will be exceeded", 38.4)
    assert month["exhausted"] == month["earliest"] == "1970-02-25T15:36:00Z"


def test_a_budget_whose_interval_alone_exceeds_it_may_be_exceeded(budgets: Budgets) -> None:
    likely, possible, safe = budgets(
        *(f"name: b{size}, tenant: blue, period: month, amount: {size}" for size in (90, 130, 999))
    )

    assert likely["forecast"] == possible["forecast"]
    assert likely["forecast_lower"] < likely["forecast"] < likely["forecast_upper"]
    assert [each["status"] for each in (likely, possible, safe)] == ["will be exceeded", "may be exceeded", "within"]
    assert possible["exhausted"] is None
    assert possible["earliest"] > likely["earliest"]
    assert (safe["exhausted"], safe["earliest"]) == (None, None)


def test_a_budget_that_is_spent_says_since_which_day(budgets: Budgets) -> None:
    [week] = budgets("tenant: red, period: month, gpu_hours: 45, time_zone: UTC")

    assert (week["status"], week["exhausted"][:10]) == ("exceeded", "1970-02-05")


def test_in_the_first_days_there_is_no_forecast(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(pod("a", segment(2000, 3 * DAY)), at=3 * DAY + HOUR))
    [month] = Budgets(run, path)("tenant: red, period: month, gpu_hours: 1000")

    assert (month["forecast"], month["forecast_upper"], month["status"]) == (None, None, "no forecast")
    assert month["spent"] == pytest.approx(72 - 2000 / HOUR)


def test_money_of_other_currencies_and_gpus_without_a_price_are_not_in_an_amount(budgets: Budgets) -> None:
    green, blue = budgets("tenant: green, period: month, amount: 5", "tenant: blue, period: month, amount: 200")

    assert green["spent"] == 0
    assert blue["unpriced_gpu_hours"] == 3
    text = budgets("tenant: blue, period: month, amount: 200", output="table")
    assert "blue/month" in text
    assert budgets.result.err == "gputally: the budget blue/month does not include 3.00 GPU-hours without a price\n"


def test_a_budget_that_matches_nothing_is_reported(budgets: Budgets) -> None:
    budgets("tenant: rde, period: month, gpu_hours: 5", output="table")

    assert budgets.result.err == "gputally: no allocation matches the budget rde/month; check its tenant and tier\n"
    [row] = budgets("tenant: rde, period: month, gpu_hours: 5")
    assert (row["matched"], row["spent"]) == (False, 0)


def test_the_table_is_for_people(budgets: Budgets) -> None:
    lines = ("tenant: red, period: month, gpu_hours: 250", "name: Blue | all, tenant: blue, period: year, amount: 999")

    assert budgets(*lines, output="table").splitlines()[:4] == [
        "Budgets, accounted from 1970-01-01 00:16:40 UTC to 1970-02-10 06:00:00 UTC",
        "",
        (
            "budget      period                 unit        limit  spent  spent %  elapsed %  "
            "forecast   lower    upper  exhausted on  status"
        ),
        (
            "red/month   1970-02-01/1970-03-01  GPU-hours  250.00  96.00     38.4       33.0  "
            "  283.50  283.50   283.50  1970-02-25    will be exceeded"
        ),
    ]
    markdown = budgets(*lines, output="markdown").splitlines()
    assert markdown[0] == "# Budgets, accounted from 1970-01-01 00:16:40 UTC to 1970-02-10 06:00:00 UTC"
    assert markdown[-1].startswith("| Blue \\| all | 1970-01-01/1971-01-01 | CHF | 999.00 | ")


def test_csv_has_the_fields_of_json(budgets: Budgets) -> None:
    lines = ("tenant: red, period: month, gpu_hours: 250", "tenant: blue, period: week, amount: 999")
    [first, *_] = documents = budgets(*lines)
    rows = list(csv.DictReader(io.StringIO(budgets(*lines, output="csv"))))

    assert list(rows[0]) == list(first)
    assert [float(row["spent"]) for row in rows] == [each["spent"] for each in documents]


def test_it_changes_nothing_and_leaves_no_files(budgets: Budgets, ledger: Path) -> None:
    before = ledger.read_bytes()
    budgets("tenant: red, period: month, gpu_hours: 250")

    assert ledger.read_bytes() == before
    assert names(ledger.parent) - {"config.yaml", "prices.yaml"} <= {"l.db", "l.db.begun", "l.db.lock"}


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("", "", "--config.file: is empty; specify the file with the section budgets"),
        ("kind: Configuration\n", "--config.file={}", "{}: budgets: is missing; add the section, see docs/budgets.md"),
        (
            "kind: Configuration\nbudgets: [{tenant: a, period: week, amount: 5}]\n",
            "--config.file={}",
            "{}: budgets[0].amount: needs a price book for its currency; set --prices.file, or use gpu_hours",
        ),
    ],
)
def test_what_is_missing_is_named(
    text: str, arguments: str, message: str, run: Runner, ledger: Path, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    result = run("budgets", "--ledger", ledger, *arguments.format(file).split())

    assert (result.status, result.err) == (2, f"gputally: {message.format(file)}\n")


def test_a_ledger_in_which_nothing_is_accounted_yet_is_an_error(run: Runner, tmp_path: Path) -> None:
    file, path = tmp_path / "c.yaml", tmp_path / "l.db"
    file.write_text("kind: Configuration\nbudgets: [{tenant: a, period: week, gpu_hours: 5}]\n")
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
    result = run("budgets", "--ledger", path, "--config.file", file)

    assert result.status == 4
    assert "contains no accounting yet; wait until its aggregator is ready" in result.err


@pytest.mark.parametrize("output", FORMATS)
def test_budgets_are_as_recorded(budgets: Budgets, golden: Golden, output: str) -> None:
    budgets("tenant: red, period: month, gpu_hours: 250", "tenant: blue, period: year, amount: 999", output=output)

    golden.check(f"budgets.{output}", budgets.result.out)
