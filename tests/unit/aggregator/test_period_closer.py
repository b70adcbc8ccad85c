"""The aggregator closes periods on the simulated cluster, once and in order, whatever fails on the way."""

import csv
import io
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from gputally.aggregator import period_closer
from gputally.aggregator.aggregator import RunningAggregator
from gputally.aggregator.ledger_writer import LedgerWriter
from gputally.aggregator.settings import Settings
from gputally.errors import LedgerUnwritable
from gputally.ledger.closed_period import ClosedPeriod, broken_chain
from gputally.ledger.open import open_reader
from gputally.web import report_processes
from gputally_sim.cluster import SimCluster
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.command import run, scrape
from tests.fakes.until import until
from tests.unit.aggregator.conftest import NOON_US
from tests.unit.commands.sample import change

CONFIGURATION = """
kind: Configuration
closing:
  closed: [2026-06-07, 2026-06-08, 2026-06-09]
"""
PRICES = """
kind: PriceBook
currency: USD
basis: node
tiers: {inference-critical: 1.5}
rules:
  - match: {default: true}
    prices:
      - {price: 2.21, effective_from: always}
      - {price: 1.99, effective_from: 2026-06-09}
"""
CHANGED = (
    "closed period 2026-06-08 was changed: its hash differs; compare it with a backup: docs/closing.md#verification"
)
DAY_US = 86_400 * 10**6
FIRST_END_US = NOON_US + DAY_US // 2
SPEED = 28_800


@pytest.fixture
async def cluster() -> AsyncIterator[SimCluster]:
    """A day takes 3 s; the accounting starts at noon."""
    async with SimCluster(seed=1, speed=SPEED, start_us=NOON_US, bookmark_s=0.2) as cluster:
        cluster.run_scenario("s1")
        yield cluster


@pytest.fixture
def closing(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(period_closer, "INTERVAL_SECONDS", 0.05)
    config, prices = tmp_path / "config.yaml", tmp_path / "prices.yaml"
    config.write_text(CONFIGURATION)
    prices.write_text(PRICES)
    return replace(settings, config=config, prices=prices)


def closed(settings: Settings) -> list[ClosedPeriod]:
    with open_reader(settings.ledger) as reader:
        return reader.closed_periods()


async def until_closed(running: RunningAggregator, count: int) -> None:
    await until_ready(running)
    health = running.pipeline.health.closing
    assert health
    await until(lambda: health.periods == count)


async def until_failed(running: RunningAggregator, count: int) -> None:
    health = running.pipeline.health.closing
    assert health
    await until(lambda: health.failures >= count)


async def by_tenant_and_tier(*command: str) -> list[dict[str, str]]:
    """GPU-hours and cost that a command prints."""
    found = await run(*command, "--by", "tenant,tier", "--output", "csv")
    assert found.err == ""
    columns = ("tenant", "tier", "gpu_hours", "cost")
    return [{name: row[name] for name in columns} for row in csv.DictReader(io.StringIO(found.out))]


async def test_each_period_closes_once_and_equals_its_report(closing: Settings, cluster: SimCluster) -> None:
    """The first day is from before the accounting start. A restart follows each closing."""
    async with aggregating(closing, cluster) as (running, url):
        await until_closed(running, 1)
        samples = await scrape(url)
    first = closed(closing)
    async with aggregating(closing, cluster) as (running, _):
        await until_closed(running, 2)

    periods = closed(closing)
    with open_reader(closing.ledger) as reader:
        start_us = reader.state().accounting_start_us
    assert periods[:1] == first
    assert [each.name for each in periods] == ["2026-06-08", "2026-06-09"]
    assert [(each.start_us, each.end_us) for each in periods] == [
        (start_us, FIRST_END_US),
        (FIRST_END_US, FIRST_END_US + DAY_US),
    ]
    assert NOON_US < start_us < FIRST_END_US
    assert broken_chain(periods) is None
    assert all(len(each.price_book) == 64 for each in periods)
    own = [line for line in periods[1].lines if line.of == 2]
    assert {line.key.price.per_gpu_hour for line in own if line.key.price} != {
        line.key.price.per_gpu_hour for line in periods[0].lines if line.key.price
    }
    assert samples["gputally_closed_periods"] == 1
    assert samples["gputally_closed_period_end_timestamp_seconds"] == FIRST_END_US / 10**6
    assert samples["gputally_period_closing_failures_total"] == 0
    invoice = await by_tenant_and_tier("periods", "2026-06-09", "--ledger", closing.ledger)
    report = await by_tenant_and_tier("report", "--window", "2026-06-09", "--ledger", closing.ledger)
    assert len(report) > 2
    assert [row for row in invoice if row in report] == report


async def test_a_failure_is_counted_logged_once_and_repeated(
    closing: Settings, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write = LedgerWriter.close_period
    failing = True

    async def close_period(self: LedgerWriter, period: ClosedPeriod) -> None:
        if failing:
            raise LedgerUnwritable("disk full")
        await write(self, period)

    monkeypatch.setattr(LedgerWriter, "close_period", close_period)
    async with aggregating(closing, cluster) as (running, _):
        await until_ready(running)
        health = running.pipeline.health.closing
        assert health
        await until(lambda: health.failures > 1)
        assert (health.periods, closed(closing)) == (0, [])
        failing = False
        await until(lambda: health.periods > 0)

    assert [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR] == [
        "a period could not be closed, which is repeated every minute: disk full"
    ]
    assert closed(closing)[0].name == "2026-06-08"


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_ledger_that_was_changed_is_not_closed_further(
    closing: Settings, cluster: SimCluster, caplog: pytest.LogCaptureFixture, *, restarted: bool
) -> None:
    async with aggregating(closing, cluster) as (running, _):
        await until_closed(running, 1)
        change(Path(closing.ledger), "UPDATE closed_lines SET tenant = 'other' WHERE ordinal = 0")
        if not restarted:
            await until_failed(running, 2)
    if restarted:
        async with aggregating(closing, cluster) as (running, _):
            await until_ready(running)
            await until_failed(running, 2)

    assert len(closed(closing)) == 1
    logged = [each for each in caplog.records if each.name == period_closer.__name__]
    assert [each.getMessage() for each in logged if each.levelno == logging.ERROR] == [
        f"a period could not be closed, which is repeated every minute: {CHANGED}"
    ]


async def test_without_the_section_nothing_is_closed(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        assert running.pipeline.health.closing is None
        samples = await scrape(url)

    assert not [name for name in samples if "closed_period" in name or "closing" in name]


async def test_a_process_that_cannot_start_is_a_failure_and_the_aggregator_goes_on(
    closing: Settings, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def exhausted(*_: object, **__: object) -> NoReturn:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    async with aggregating(closing, cluster) as (running, url):
        monkeypatch.setattr("asyncio.create_subprocess_exec", exhausted)
        await until_ready(running)
        health = running.pipeline.health.closing
        assert health
        await until(lambda: health.failures > 0)
        samples = await scrape(url)

    assert samples["gputally_period_closing_failures_total"] >= 1


async def test_a_preview_that_cannot_run_is_a_failure(
    closing: Settings, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_processes, "PREVIEW_BYTES", 10)
    async with aggregating(closing, cluster) as (running, _):
        await until_ready(running)
        health = running.pipeline.health.closing
        assert health
        await until(lambda: health.failures > 0)

    assert closed(closing) == []
