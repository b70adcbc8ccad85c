"""A pipeline on a ledger whose disk can be filled."""

from pathlib import Path

from gputally.aggregator.intake import LIMIT
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.observation import Observation
from tests.fakes.bookkeeping import Time, open_pipeline


class Desk:
    """A pipeline with its clock and ledger."""

    def __init__(self, path: Path, *, zero_us: int = 0, limit: int = LIMIT) -> None:
        self.ledger = SqliteLedger(path)
        self.time = Time()
        self.pipeline = open_pipeline(self.ledger, self.time, zero_us=zero_us, limit=limit)

    def take(self, observations: tuple[Observation, ...]) -> None:
        self.time.now_us = max(self.time.now_us, observations[-1].at_us)
        self.pipeline.accountant.take(observations)

    def fill(self) -> None:
        """Limit the database to its current pages."""
        [pages] = self.ledger._connection.execute("PRAGMA page_count").fetchone()
        self.ledger._connection.execute(f"PRAGMA max_page_count = {pages}")

    def make_room(self) -> None:
        self.ledger._connection.execute("PRAGMA max_page_count = 1000000")

    async def samples(self) -> dict[str, float]:
        lines = (await self.pipeline.exposition.scrape(False)).decode().splitlines()  # noqa: FBT003 - the signature of Scrape
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    def close(self) -> None:
        with self.ledger:
            self.pipeline.writer.close()


def allocated(samples: dict[str, float]) -> float:
    return sum(value for name, value in samples.items() if name.startswith("gputally_allocated_gpu_seconds_total{"))
