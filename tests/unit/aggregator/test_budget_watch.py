"""Budgets are evaluated beside the accounting, equal reports, and a failure leaves the last values."""

import asyncio
import json
import logging
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gputally.aggregator import budget_watch
from gputally.aggregator.budget_watch import keep_evaluated
from gputally.aggregator.settings import Settings
from gputally.catalog.all import BUDGETS
from gputally.errors import ConfigError
from gputally.exposition.text_format import render
from gputally.model.budgets import BudgetsHealth
from gputally.web.ledger_process import ReportUnavailable
from gputally_sim.cluster import SimCluster
from tests.conftest import Golden
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.command import scrape
from tests.fakes.until import until

PRICES = """
kind: PriceBook
currency: USD
basis: node
rules: [{id: all, match: {default: true}, price: 2.21, effective_from: always}]
"""
BUDGET = 'kind: Configuration\nbudgets:\n  - {name: all, tenant: "*", period: month, amount: 1000}\n'
HOURS = '  - {tenant: "*", tier: training-*, period: year, gpu_hours: 9}\n'


def document(**changed: object) -> bytes:
    """What the command prints of one budget in money and one in GPU-hours."""
    money = {
        "budget": "vision/month",
        "tenant": "vision",
        "tier": "*",
        "period": "month",
        "unit": "USD",
        "limit": 1000,
        "spent": 250.5,
        "elapsed_percent": 25,
        "forecast": 1100.25,
        "forecast_lower": 990,
        "forecast_upper": 1210.5,
        "exhausted": "2026-06-28T12:00:00+02:00",
        "earliest": "2026-06-25T00:00:00Z",
        "matched": True,
        "status": "not read here",
    } | changed
    nothing = dict.fromkeys(("forecast", "forecast_lower", "forecast_upper", "exhausted", "earliest"))
    hours = money | nothing | {"budget": "lab", "unit": "GPU-hours", "limit": 10, "spent": 0.5, "matched": False}
    return json.dumps({"version": 1, "accounted": "2026-06-08T12:00:00Z", "budgets": [money, hours]}).encode()


class Evaluations:
    """Returns each of the results in turn, then the last one again."""

    def __init__(self, *results: bytes | Exception) -> None:
        self._results = iter(results)
        self._last = results[-1]
        self.count = 0

    async def __call__(self) -> bytes:
        self.count += 1
        self._last = next(self._results, self._last)
        if isinstance(self._last, Exception):
            raise self._last
        return self._last


async def health_after(evaluations: Evaluations, count: int) -> BudgetsHealth:
    health = BudgetsHealth()
    task = asyncio.create_task(keep_evaluated(evaluations, health, ready=lambda: True, interval_s=0.001))
    await until(lambda: evaluations.count > count)
    assert not task.done()
    task.cancel()
    return health


async def test_the_values_are_exported_in_base_units(golden: Golden) -> None:
    health = await health_after(Evaluations(document()), 1)

    text = render(((metric, metric.rows(health)) for metric in BUDGETS), openmetrics=False)
    golden.check("budgets.prom", text.decode())


async def test_before_the_first_evaluation_there_are_no_values() -> None:
    """But the start, so that an alert fires if no evaluation ever succeeds."""
    started = BudgetsHealth(started=datetime(1970, 1, 1, 0, 1, tzinfo=UTC))
    samples = render(((metric, metric.rows(started)) for metric in BUDGETS), openmetrics=False)

    values = {line for line in samples.decode().splitlines() if not line.startswith("#")}
    assert values == {
        "gputally_budgets_evaluation_failures_total 0.0",
        "gputally_budgets_accounted_timestamp_seconds 60.0",
    }


async def test_failures_leave_the_last_values_and_are_logged_once_in_a_row(caplog: pytest.LogCaptureFixture) -> None:
    wrong, full, late = b"nonsense", OSError("no memory"), ReportUnavailable("the report took more than 120 s")
    evaluations = Evaluations(document(), late, full, wrong, document(spent=300), late)
    health = BudgetsHealth()
    task = asyncio.create_task(keep_evaluated(evaluations, health, ready=lambda: True, interval_s=0.001))
    await until(lambda: health.failures == 5)
    task.cancel()

    assert [each.spent for each in health.values] == [300, 0.5]
    assert health.accounted == datetime(2026, 6, 8, 12, tzinfo=UTC)
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == 2
    assert warnings[0].endswith("keep the last values: the report took more than 120 s")


async def test_nothing_is_evaluated_before_the_lists_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_watch, "READY_SECONDS", 0.001)
    asked, evaluations = [0], Evaluations(document())

    def ready() -> bool:
        asked[0] += 1
        return asked[0] > 5

    task = asyncio.create_task(keep_evaluated(evaluations, BudgetsHealth(), ready=ready, interval_s=60))
    await until(lambda: asked[0] == 5)
    assert evaluations.count == 0
    await until(lambda: evaluations.count)
    task.cancel()


@pytest.fixture
def budgeted(settings: Settings, tmp_path: Path) -> Settings:
    (tmp_path / "config.yaml").write_text(BUDGET + HOURS)
    (tmp_path / "prices.yaml").write_text(PRICES)
    return replace(settings, config=tmp_path / "config.yaml", prices=tmp_path / "prices.yaml", budgets_interval_s=0.001)


async def test_what_a_running_aggregator_says_is_spent_equals_its_report(
    budgeted: Settings, cluster: SimCluster
) -> None:
    async with aggregating(budgeted, cluster) as (running, url):
        await until_ready(running)
        before = await scrape(url)
        spent = 'gputally_budget_spent_cost{budget="all",currency="USD",period="month",tenant="*",tier="*"}'
        await until(lambda: any(each.spent for each in (running.pipeline.health.budgets or BudgetsHealth()).values))
        samples = await scrape(url)
        budgets = running.pipeline.health.budgets
    assert budgets
    assert spent not in before or before[spent] <= samples[spent]

    until_text = f"{budgets.accounted:%Y-%m-%dT%H:%M:%S.%fZ}"
    report = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gputally", "report", "--ledger", budgeted.ledger, "--output", "json"),
        *("--decimals", "9", "--by", "tier", "--window", f"2026-06-01/{until_text}"),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await report.communicate()
    [total] = json.loads(out)["totals"]
    training = [row["gpu_hours"] for row in json.loads(out)["rows"] if row["tier"].startswith("training-")]
    money, hours = budgets.values
    assert (money.spent, hours.spent) == pytest.approx((total["cost"], sum(training)), abs=2e-9)
    assert money.spent > 0


async def test_without_budgets_nothing_is_exported_and_nothing_runs(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        samples = await scrape(url)

    assert not [name for name in samples if name.startswith("gputally_budget")]
    assert running.pipeline.health.budgets is None


async def test_a_period_longer_than_the_retention_must_begin_at_midnight_in_utc(
    budgeted: Settings, cluster: SimCluster, tmp_path: Path
) -> None:
    quarter, year = "gpu_hours: 9, period: quarter", "gpu_hours: 9, period: year"
    lines = (f"time_zone: Asia/Tokyo, {quarter}", f"time_zone: Asia/Tokyo, {year}", year)
    budgets = "".join(f'  - {{name: b{number}, tenant: "*", {line}}}\n' for number, line in enumerate(lines))
    (tmp_path / "config.yaml").write_text(f"kind: Configuration\nbudgets:\n{budgets}")

    with pytest.raises(ConfigError) as raised:
        async with aggregating(replace(budgeted, retention_days=93), cluster):
            pass

    remedy = "must be UTC, as --ledger.retention 93d keeps no single allocations of a whole year; or keep more"
    assert str(raised.value) == f"{tmp_path / 'config.yaml'}: budgets[1].time_zone: {remedy}"


async def test_amounts_without_a_price_book_end_the_start(budgeted: Settings, cluster: SimCluster) -> None:
    with pytest.raises(ConfigError, match=r"budgets\[0\]\.amount: needs a price book"):
        async with aggregating(replace(budgeted, prices=None), cluster):
            pass
