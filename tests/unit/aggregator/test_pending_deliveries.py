"""Which records the webhook of preemptions gets, over restarts and with a ledger that cannot be written."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gputally.aggregator.preemption_webhook import due_records
from gputally.errors import LedgerUnwritable
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Checkpoint
from tests.contract.records import step
from tests.fakes.delivering import NOW, VICTIM, delivering, pending, record
from tests.fakes.webhook import Receiver


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


async def test_a_killed_process_delivers_again_what_it_had_not_marked(path: Path) -> None:
    receiver = Receiver()
    async with delivering(record(path, "a"), receiver) as process:
        [due] = due_records(str(path), after="", now_us=NOW).due
        await process.webhook._posted(process.session, due)  # as far as the killed process comes
    async with delivering(path, receiver) as process:
        await process.once()

    assert receiver.ids == ["a", "a"]
    assert pending(path) == set()


async def test_a_ledger_that_cannot_be_written_makes_no_second_delivery(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise LedgerUnwritable("the disk is full")

    receiver = Receiver()
    async with delivering(record(path, "a", "b"), receiver) as process:
        with monkeypatch.context() as full:
            full.setattr(SqliteLedger, "finish_delivery", refuse)
            assert not await process.once()
            assert not await process.once()
            assert receiver.ids == ["a"]
        assert await process.once()
        assert process.results == {"delivered": 2}

    assert receiver.ids == ["a", "b"]
    assert pending(path) == set()


async def test_records_that_are_not_complete_are_pending(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        changes: dict[str, Any] = {"victims": {"a": replace(VICTIM, job_preemption="a", decided_us=NOW)}}
        ledger.write(step(at=5000, resumes={Kind.PODS: Checkpoint(version="1", at_us=NOW, rules="")}, **changes))
    receiver = Receiver()
    async with delivering(path, receiver) as process:
        assert await process.once()
        assert process.pending == 1

    assert receiver.attempts == []


async def test_nothing_is_delivered_before_the_missed_events_are_accounted(path: Path) -> None:
    receiver = Receiver()
    async with delivering(record(path, "a"), receiver) as process:
        process.pipeline.exposition._caught_up = False
        process.pipeline.health.watches[0].synced = False
        assert await process.once()

    assert receiver.attempts == []


async def test_a_preemption_that_was_none_after_all_is_not_pending(path: Path) -> None:
    record(path, "a")
    with SqliteLedger(path) as ledger:
        ledger.write(step(at=5001, victims={"a": None}))
    receiver = Receiver()
    async with delivering(path, receiver) as process:
        assert await process.once()
        assert process.pending == 0

    assert receiver.attempts == []
