"""Damage is shown and logged, and ends nothing; a sound ledger is looked through again after a while."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from gputally.aggregator import ledger_maintenance
from gputally.aggregator.ledger_maintenance import keep_checked
from gputally.errors import LedgerDamaged, LedgerUnwritable
from gputally.model.health import LedgerHealth
from tests.fakes.until import until


class Checked:
    """Looked through as told, each time the next."""

    def __init__(self, *findings: Exception | None) -> None:
        self._findings = iter(findings)
        self.looks = 0

    def check(self) -> Iterator[None]:
        yield
        self.looks += 1
        finding = next(self._findings, None)
        if finding:
            raise finding


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_maintenance, "CHECK_INTERVAL_SECONDS", 0.001)


async def health_after(ledger: Checked, looks: int) -> LedgerHealth:
    health = LedgerHealth()
    task = asyncio.create_task(keep_checked(ledger.check, health, clock=lambda: 1000 + ledger.looks))
    await until(lambda: ledger.looks >= looks)
    assert not task.done()
    task.cancel()
    return health


async def test_a_sound_ledger_is_looked_through_again_and_again() -> None:
    health = await health_after(Checked(), 3)

    assert (health.damaged, health.checked_us in {1002, 1003}) == (False, True)


async def test_damage_is_shown_until_a_later_look_finds_none(caplog: pytest.LogCaptureFixture) -> None:
    ledger = Checked(LedgerDamaged("page 7"))
    health = LedgerHealth()
    task = asyncio.create_task(keep_checked(ledger.check, health, clock=lambda: 5))
    await until(lambda: health.damaged)
    await until(lambda: health.checked_us)
    task.cancel()

    assert (health.damaged, health.checked_us) == (False, 5)
    [entry] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert entry.getMessage() == "page 7; accounting continues: see docs/runbooks/GputallyLedgerDamaged.md"


async def test_what_cannot_be_read_now_is_looked_through_later() -> None:
    health = await health_after(Checked(LedgerUnwritable("busy")), 1)

    assert (health.damaged, health.checked_us) == (False, None)
