"""While the ledger cannot be written, accounting goes on in memory; once it can, it is as if it always could."""

import asyncio
import logging
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from gputally.aggregator import ledger_writer
from gputally.aggregator.aggregator import account
from gputally.aggregator.pipeline import Pipeline
from gputally.errors import LedgerUnwritable
from tests.fakes.bookkeeping import Time, outcome, position, run_accounting
from tests.fakes.desk import Desk, allocated
from tests.fakes.stream import stream
from tests.fakes.until import PATIENCE_SECONDS, until

ROOT = Path(__file__).parents[3]
OBSERVATIONS = stream(3, 150)
HALF = len(OBSERVATIONS) // 2


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "ledger.db")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ledger of the same stream on a disk that never was full."""
    path = tmp_path_factory.mktemp("undisturbed") / "ledger.db"
    asyncio.run(run_accounting(path, OBSERVATIONS, Random(1)))
    return path


async def test_a_full_ledger_is_told_and_the_rows_that_wait_are_counted(desk: Desk) -> None:
    desk.take(OBSERVATIONS[:HALF])
    await desk.samples()
    desk.fill()
    before = await desk.samples()

    desk.take(OBSERVATIONS[HALF:])
    await desk.pipeline.writer.flush()
    full = await desk.samples()

    assert (before["gputally_ledger_writable"], before["gputally_ledger_waiting_rows"]) == (1, 0)
    assert full["gputally_ledger_writable"] == 0
    assert full["gputally_ledger_waiting_rows"] > 100
    assert full["gputally_ledger_write_failures_total"] == 1
    assert allocated(full) == allocated(before)
    desk.make_room()
    desk.close()


async def test_what_waited_is_written_once_there_is_room_and_nothing_differs(desk: Desk, undisturbed: Path) -> None:
    for number, index in enumerate(range(0, len(OBSERVATIONS), 20)):
        if number == 5:
            desk.fill()
        desk.take(OBSERVATIONS[index : index + 20])
        await desk.pipeline.writer.flush()
        await desk.samples()
    assert not desk.pipeline.health.ledger.writable

    desk.make_room()
    await desk.pipeline.writer.flush()
    after = await desk.samples()

    assert (after["gputally_ledger_writable"], after["gputally_ledger_waiting_rows"]) == (1, 0)
    assert after['gputally_reconciliation_difference_gpu_seconds{check="ledger"}'] == 0
    desk.close()
    assert outcome(desk.ledger.path)[0] == outcome(undisturbed)[0]


async def test_writing_is_tried_again_by_itself(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_writer, "RETRY_SECONDS", 0.001)
    health = desk.pipeline.health.ledger
    desk.fill()
    desk.take(OBSERVATIONS)
    flusher = asyncio.create_task(desk.pipeline.writer.keep_flushed())
    await until(lambda: health.failures >= 3)
    desk.make_room()
    await until(lambda: health.writable)

    assert (health.waiting, desk.pipeline.writer.room.is_set()) == (0, True)
    flusher.cancel()
    with suppress(asyncio.CancelledError):
        await flusher
    desk.close()


async def test_an_outage_is_logged_once_and_its_end_too(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    desk.fill()
    for observations in (OBSERVATIONS[:HALF], OBSERVATIONS[HALF:]):
        desk.take(observations)
        await desk.pipeline.writer.flush()
    desk.make_room()
    await desk.pipeline.writer.flush()
    desk.close()

    [(first, outage), (second, end)] = [
        (record.levelname, record.getMessage()) for record in caplog.records if record.name == ledger_writer.__name__
    ]
    assert (first, second) == ("ERROR", "INFO")
    assert outage.startswith(f"{desk.ledger.path}: cannot be used now: database or disk is full; accounting continues")
    assert end.startswith("the ledger is writable again")


async def test_a_scrape_does_not_wait_for_a_ledger_known_to_refuse(desk: Desk) -> None:
    desk.fill()
    desk.take(OBSERVATIONS)
    await desk.pipeline.writer.flush()

    await desk.samples()
    await desk.samples()

    assert desk.pipeline.health.ledger.failures == 1
    desk.make_room()
    desk.close()


async def test_books_closed_on_a_full_disk_say_so_and_the_next_start_learns_the_rest_again(
    desk: Desk, undisturbed: Path
) -> None:
    desk.take(OBSERVATIONS[:HALF])
    await desk.pipeline.writer.flush()
    desk.fill()
    desk.take(OBSERVATIONS[HALF:])

    with pytest.raises(LedgerUnwritable, match=r"database or disk is full; \d+ rows were not written"):
        desk.close()

    await run_accounting(desk.ledger.path, OBSERVATIONS, Random(1))
    assert outcome(desk.ledger.path)[0] == outcome(undisturbed)[0]


async def test_with_too_many_rows_waiting_the_watches_are_held_back_and_nothing_is_lost(
    tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_writer, "ROOM", 50)
    desk = Desk(tmp_path / "ledger.db", limit=50)
    books = desk.pipeline
    desk.fill()
    desk.take(OBSERVATIONS[:HALF])
    await books.writer.flush()
    assert not books.writer.room.is_set()
    accountant = asyncio.create_task(account(books))
    watch = asyncio.create_task(tell(books, desk.time))
    await until(lambda: books.intake.size >= 50)
    for _ in range(100):
        await asyncio.sleep(0)

    assert books.intake.size >= 50
    assert position(books) + books.intake.size < len(OBSERVATIONS)
    assert not watch.done()

    desk.make_room()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await books.writer.flush()
        await watch
    await until(lambda: not books.intake.size)
    accountant.cancel()
    with suppress(asyncio.CancelledError):
        await accountant
    desk.close()
    assert outcome(desk.ledger.path)[0] == outcome(undisturbed)[0]


async def tell(books: Pipeline, time: Time) -> None:
    for observation in OBSERVATIONS[HALF:]:
        await books.intake.put([observation])
        time.now_us = max(time.now_us, observation.at_us)


LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.fakes.bookkeeping import Time, open_pipeline
from tests.fakes.stream import stream

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main():
    time, observations = Time(), stream(3, 150)
    with SqliteLedger(Path(sys.argv[1])) as ledger:
        books = open_pipeline(ledger, time)
        await books.writer.flush()
        limit(150_000)
        for index in range(0, len(observations), 20):
            batch = observations[index:index + 20]
            time.now_us = batch[-1].at_us
            books.accountant.take(batch)
            await books.writer.flush()
        print(books.health.ledger.writable, books.health.ledger.failures > 3, books.health.ledger.waiting > 100)
        limit(resource.RLIM_INFINITY)
        await books.writer.flush()
        print(books.health.ledger.writable, not any(map(any, books.writer.differences.values())))
        books.writer.close()

asyncio.run(main())
"""


def test_a_file_that_the_system_lets_grow_no_further_is_a_full_disk(tmp_path: Path, undisturbed: Path) -> None:
    path = tmp_path / "ledger.db"

    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.stdout.splitlines(), done.returncode) == (["False True True", "True True"], 0), done.stderr
    assert outcome(path)[0] == outcome(undisturbed)[0]
