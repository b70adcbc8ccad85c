"""A process that accounts a stream of observations and prints what it publishes; tests kill it at any moment.

Run as `python -m tests.fakes.bookkeeping LEDGER SEED PODS`. It continues from the state of the ledger.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from msgspec.structs import replace

from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.totals.series import Labels
from gputally.accounting.totals.total import RECONCILED, Total
from gputally.aggregator.intake import LIMIT
from gputally.aggregator.pipeline import Pipeline, assemble
from gputally.ledger.protocol import Ledger
from gputally.ledger.records import SegmentRecord
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.health import WatchHealth
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Checkpoint, Observation
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from tests.core.ledgers import segments_in
from tests.core.manifests import us
from tests.fakes.stream import BOOK, initial_listings, stream

START_US = us(30)
END_US = us(1_000_000)
BATCH = 8


class Time:
    """A clock that follows the stream."""

    def __init__(self, now_us: int = START_US) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        return self.now_us


def open_pipeline(ledger: Ledger, time: Time, *, zero_us: int = 0, limit: int = LIMIT) -> Pipeline:
    """A pipeline that continues from the ledger, with namespaces and nodes already listed."""
    saved = ledger.saved(now_us=time())
    time.now_us = max(time.now_us, saved.at_us, saved.evaluated_us)
    fleet = Fleet(rules=Rules(), book=BOOK, saved=saved, zero_us=zero_us)
    synced = tuple(WatchHealth(kind=kind, synced=True) for kind in Kind)
    pipeline = assemble(fleet, ledger, clock=time, watches=synced, limit=limit)
    pipeline.accountant.take([*initial_listings(time())])
    return pipeline


def position(pipeline: Pipeline) -> int:
    """The number of accounted observations of the stream."""
    resume = pipeline.fleet.coverage.resumes.get(Kind.PODS)
    return int(resume.version) if resume else 0


async def run_accounting(
    path: Path, observations: Sequence[Observation], chance: Random, publish: Callable[[bytes], None] = lambda _: None
) -> None:
    """Account the rest of `observations` with scrapes at random times, then close the pipeline."""
    time = Time()
    with SqliteLedger(path) as ledger:
        pipeline = open_pipeline(ledger, time)
        flusher = asyncio.create_task(pipeline.writer.keep_flushed())
        for index in range(position(pipeline), len(observations), BATCH):
            batch = observations[index : index + BATCH]
            time.now_us = max(time.now_us, batch[-1].at_us)
            pipeline.accountant.take(batch)
            if chance.random() < 0.3:
                publish(await pipeline.exposition.scrape(False))  # noqa: FBT003 - the signature of Scrape
            await asyncio.sleep(0.002)
        flusher.cancel()
        with suppress(asyncio.CancelledError):
            await flusher
        time.now_us = observations[-1].at_us + 3_600_000_000
        publish(await pipeline.exposition.scrape(False))  # noqa: FBT003 - the signature of Scrape
        assert pipeline.writer.differences == dict.fromkeys(RECONCILED, (0, 0)), "the counters differ from the rows"
        pipeline.writer.close()


def outcome(
    path: Path,
) -> tuple[list[SegmentRecord], dict[tuple[Total, Labels], int], Checkpoint, tuple[PodRecord, ...]]:
    """The final state of the ledger: segments, exact counter values, the pods' checkpoint, and saved pods.

    Revision numbers are set to 0, because they depend on the times of flushes.
    """
    with SqliteLedger(path) as ledger:
        saved = ledger.saved(now_us=0)
        truth = {key: series.at(END_US) for key, series in saved.series.items()}
        entries = [replace(each, revision=0) for each in segments_in(path)]
        return entries, truth, saved.resumes[Kind.PODS], tuple(replace(pod, revision=0) for pod in saved.pods)


def print_counters(exposition: bytes) -> None:
    """Print the counters as one line of JSON."""
    samples = (line.rpartition(" ") for line in exposition.decode().splitlines() if line.startswith("gputally_"))
    counted = {name: float(value) for name, _, value in samples if is_fleet_counter(name)}
    sys.stdout.write(json.dumps(counted) + "\n")
    sys.stdout.flush()


def is_fleet_counter(sample: str) -> bool:
    """Whether it is a fleet counter; the process's own counters restart at 0."""
    name = sample.partition("{")[0]
    own = ("gputally_watch", "gputally_ledger", "gputally_skipped", "gputally_label", "gputally_agent")
    return name.endswith(("_total", "_bucket", "_count", "_sum")) and not name.startswith(own)


if __name__ == "__main__":
    asyncio.run(run_accounting(Path(sys.argv[1]), stream(int(sys.argv[2]), int(sys.argv[3])), Random(), print_counters))
