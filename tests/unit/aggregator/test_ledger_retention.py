"""Old allocations are rolled up again and again, between writes, and what fails is repeated."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gputally.aggregator import ledger_maintenance
from gputally.aggregator.ledger_maintenance import keep_rolled_up
from gputally.aggregator.pipeline import assemble
from gputally.errors import LedgerUnwritable
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.health import ClosingHealth
from gputally.model.units import US_PER_DAY, US_PER_HOUR
from tests.contract.records import pod, segment, step, us
from tests.core.replay import Replay
from tests.fakes.until import until

NOON = 500 * US_PER_DAY + 12 * US_PER_HOUR


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_maintenance, "ROLL_UP_INTERVAL_SECONDS", 0.001)


class Writer:
    """Rolls up as told, each time the next."""

    def __init__(self, *passes: list[int] | Exception) -> None:
        self.ledger: Any = self
        self.before: list[int] = []
        self._passes = iter(passes)

    def roll_up(self, before_us: int) -> Iterator[int]:
        self.before.append(before_us)
        found = next(self._passes, [])
        if isinstance(found, Exception):
            raise found
        yield from found

    async def run_between(self, call: Callable[[], object]) -> object:
        return call()


async def run(writer: Any, passes: int) -> None:  # noqa: ANN401 - a Writer instead of that of a ledger
    task = asyncio.create_task(keep_rolled_up(writer, retention_us=400 * US_PER_DAY, clock=lambda: NOON))
    await until(lambda: len(writer.before) > passes)
    task.cancel()


async def test_whole_days_older_than_the_retention_are_rolled_up_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    writer = Writer([1, 3, 3])
    with caplog.at_level(logging.INFO):
        await run(writer, 2)

    assert set(writer.before) == {100 * US_PER_DAY}
    assert [each.getMessage() for each in caplog.records if "ended" in each.getMessage()] == [
        "3 allocations that ended before 1970-04-11 are rolled up into daily rows"
    ]


@pytest.mark.parametrize(("last_end_us", "before"), [(50 * US_PER_DAY + 7, 50), (300 * US_PER_DAY, 100)])
async def test_only_closed_periods_are_rolled_up(last_end_us: int, before: int) -> None:
    writer: Any = Writer()
    closing = ClosingHealth(last_end_us=last_end_us)
    rolling = keep_rolled_up(writer, retention_us=400 * US_PER_DAY, clock=lambda: NOON, closing=closing)
    task = asyncio.create_task(rolling)
    await until(lambda: bool(writer.before))
    task.cancel()

    assert set(writer.before) == {before * US_PER_DAY}


async def test_a_start_rolls_up_as_soon_as_its_closed_periods_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that restarts more often than once an hour has no later pass."""
    monkeypatch.setattr(ledger_maintenance, "ROLL_UP_INTERVAL_SECONDS", 3600)
    monkeypatch.setattr(ledger_maintenance, "NONE_CLOSED_SECONDS", 0.001)
    writer: Any = Writer()
    closing = ClosingHealth()
    rolling = keep_rolled_up(writer, retention_us=400 * US_PER_DAY, clock=lambda: NOON, closing=closing)
    task = asyncio.create_task(rolling)
    await asyncio.sleep(0)
    closing.last_end_us = 50 * US_PER_DAY
    await until(lambda: bool(writer.before))
    task.cancel()

    assert writer.before == [50 * US_PER_DAY]


async def test_what_fails_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    writer = Writer(LedgerUnwritable("full"), [2])
    with caplog.at_level(logging.INFO):
        await run(writer, 2)

    found = [each.getMessage() for each in caplog.records if each.name == ledger_maintenance.__name__]
    assert found == [
        "full; --ledger.retention continues later",
        "2 allocations that ended before 1970-04-11 are rolled up into daily rows",
    ]


async def test_the_writer_rolls_up_in_its_own_thread(tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "ledger.db") as ledger:
        ledger.write(step(pod("a", segment(1000, 2000), end_us=us(2000)), at=2000))
        writer = assemble(Replay().fleet, ledger, clock=lambda: NOON).writer
        task = asyncio.create_task(keep_rolled_up(writer, retention_us=400 * US_PER_DAY, clock=lambda: NOON))
        await until(lambda: _daily_rows(tmp_path / "ledger.db") == 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        writer._thread.shutdown()


def _daily_rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        [count] = connection.execute("SELECT count(*) FROM daily_rows").fetchone()
    return int(count)
