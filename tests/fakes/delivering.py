"""A process with the webhook of preemptions, on a ledger with records that are due."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from aiohttp import ClientSession
from msgspec.structs import replace

from gputally.aggregator.pipeline import Pipeline
from gputally.aggregator.preemption_webhook import PreemptionWebhook, url_source
from gputally.ledger.open import open_reader
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.disruptions import Cause
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Checkpoint
from gputally.model.units import US_PER_SECOND
from tests.contract.records import BY, DISRUPTION, LOST_WORK, step, us
from tests.fakes.bookkeeping import Time, open_pipeline
from tests.fakes.webhook import Receiver, listening

AT = us(5000)
NOW = AT + 3600 * US_PER_SECOND
VICTIM = replace(
    DISRUPTION,
    cause=Cause.PREEMPTION,
    reported=Cause.PREEMPTION,
    decided_us=AT,
    requested_us=AT,
    released_us=AT + 5 * US_PER_SECOND,
    replaced_us=AT + 60 * US_PER_SECOND,
    announced=True,
    by=BY,
)


def record(path: Path, *ids: str) -> Path:
    """A ledger with preemptions of one pod each that are complete."""
    with SqliteLedger(path) as ledger:
        ledger.bind("cluster-1")
        pods = {uid: replace(VICTIM, victim_uid=uid, job=f"train-{uid}", job_preemption=uid) for uid in ids}
        ledger.write(
            step(
                at=5000,
                victims=pods,
                lost_work={uid: replace(LOST_WORK, victim_uid=uid) for uid in ids},
                resumes={Kind.PODS: Checkpoint(version="1", at_us=NOW, rules="")},
            )
        )
    return path


@contextmanager
def pipeline_on(path: Path) -> Iterator[Pipeline]:
    """A process that has caught up."""
    with SqliteLedger(path) as ledger:
        pipeline = open_pipeline(ledger, Time(NOW))
        try:
            yield pipeline
        finally:
            pipeline.writer.close()


@asynccontextmanager
async def delivering(path: Path, receiver: Receiver) -> AsyncIterator["Delivering"]:
    with pipeline_on(path) as pipeline:
        async with listening(receiver, path.parent) as endpoint, ClientSession() as session:
            yield Delivering(path, pipeline, endpoint.path, session)


class Delivering:
    """One process with its webhook."""

    def __init__(self, path: Path, pipeline: Pipeline, url: Path, session: ClientSession) -> None:
        self.pipeline = pipeline
        self.webhook = PreemptionWebhook(str(path), pipeline, url_source(url), clock=lambda: NOW)
        self.session = session

    async def once(self) -> bool:
        return await self.webhook.deliver_due(self.session)

    @property
    def results(self) -> dict[str, int]:
        assert self.pipeline.health.deliveries
        return {result: count for result, count in self.pipeline.health.deliveries.results.items() if count}

    @property
    def pending(self) -> int:
        assert self.pipeline.health.deliveries
        return self.pipeline.health.deliveries.pending


def pending(path: Path) -> set[str]:
    with open_reader(str(path)) as reader:
        return {each.id for each in reader.pending_deliveries(after="", limit=1000).page}
