"""A process that keeps books of a stream and tells what it publishes, to be killed at any moment.

Run as `python -m tests.fakes.bookkeeping LEDGER SEED PODS`. It goes on where the ledger left off.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from msgspec.structs import replace

from gputally.accounting.fleet import Fleet
from gputally.accounting.totals.series import Labels
from gputally.accounting.totals.totals import Total
from gputally.aggregator.intake import LIMIT
from gputally.aggregator.pipeline import Pipeline, assemble
from gputally.ledger.protocol import Ledger
from gputally.ledger.records import SegmentRecord
from gputally.ledger.sqlite.sqlite_ledger import SqliteLedger
from gputally.model.health import WatchHealth
from gputally.model.kube import Kind
from gputally.model.observation import Checkpoint, Observation
from gputally.model.pod import PodRecord
from gputally.model.rules import Rules
from tests.core.ledgers import segments_in
from tests.core.manifests import us
from tests.fakes.stream import BOOK, stream, surroundings

START_US = us(30)
END_US = us(1_000_000)
BATCH = 8


class Time:
    """Moves as the stream does."""

    def __init__(self, now_us: int = START_US) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        return self.now_us


def open_books(ledger: Ledger, time: Time, *, zero_us: int = 0, limit: int = LIMIT) -> Pipeline:
    """A pipeline that goes on from what the ledger holds, with the surroundings of the pods accounted."""
    saved = ledger.saved(now_us=time())
    time.now_us = max(time.now_us, saved.at_us, saved.evaluated_us)
    fleet = Fleet(rules=Rules(), book=BOOK, saved=saved, zero_us=zero_us)
    synced = tuple(WatchHealth(kind=kind, synced=True) for kind in Kind)
    pipeline = assemble(fleet, ledger, clock=time, watches=synced, limit=limit)
    pipeline.accountant.take(surroundings(time()))
    return pipeline


def position(books: Pipeline) -> int:
    """How many observations of the stream are accounted."""
    resume = books.fleet.coverage.resumes.get(Kind.PODS)
    return int(resume.version) if resume else 0


async def keep(
    path: Path, observations: Sequence[Observation], chance: Random, tell: Callable[[bytes], None] = lambda _: None
) -> None:
    """Account what is left of `observations`, with scrapes at any time, and close the books."""
    time = Time()
    with SqliteLedger(path) as ledger:
        books = open_books(ledger, time)
        flusher = asyncio.create_task(books.writer.keep_flushed())
        for index in range(position(books), len(observations), BATCH):
            batch = observations[index : index + BATCH]
            time.now_us = max(time.now_us, batch[-1].at_us)
            books.accountant.take(batch)
            if chance.random() < 0.3:
                tell(await books.exposition.scrape(False))  # noqa: FBT003 - the shape the web side asks for
            await asyncio.sleep(0.002)
        flusher.cancel()
        with suppress(asyncio.CancelledError):
            await flusher
        time.now_us = observations[-1].at_us + 3_600_000_000
        tell(await books.exposition.scrape(False))  # noqa: FBT003 - the same
        assert books.writer.difference == (0, 0), "the counters differ from the ledger's own segments"
        books.writer.close()


def outcome(
    path: Path,
) -> tuple[list[SegmentRecord], dict[tuple[Total, Labels], int], Checkpoint, tuple[PodRecord, ...]]:
    """What the ledger says in the end: segments, the truth of every counter, and what is left to resume from.

    How often an allocation was revised on the way is left out: it depends on when somebody looked.
    """
    with SqliteLedger(path) as ledger:
        saved = ledger.saved(now_us=0)
        truth = {key: series.at(END_US) for key, series in saved.series.items()}
        entries = [replace(each, revision=0) for each in segments_in(path)]
        return entries, truth, saved.resumes[Kind.PODS], tuple(replace(pod, revision=0) for pod in saved.pods)


def say(exposition: bytes) -> None:
    """The counters as one line of JSON."""
    samples = (line.rpartition(" ") for line in exposition.decode().splitlines() if line.startswith("gputally_"))
    counted = {name: float(value) for name, _, value in samples if is_fleet_counter(name)}
    sys.stdout.write(json.dumps(counted) + "\n")
    sys.stdout.flush()


def is_fleet_counter(sample: str) -> bool:
    """Of the fleet; the process's own counters begin anew with it."""
    name = sample.partition("{")[0]
    own = ("gputally_watch", "gputally_ledger", "gputally_skipped", "gputally_label", "gputally_agent")
    return name.endswith(("_total", "_bucket", "_count", "_sum")) and not name.startswith(own)


if __name__ == "__main__":
    asyncio.run(keep(Path(sys.argv[1]), stream(int(sys.argv[2]), int(sys.argv[3])), Random(), say))
