"""Delivers the record of each preemption of a job to a webhook, at least once."""

import logging
from asyncio import sleep, to_thread
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

import msgspec
from aiohttp import ClientSession
from msgspec import structs

from gputally.aggregator.pipeline import Pipeline
from gputally.client.webhook import BAD_DOCUMENT, post, webhook_url
from gputally.errors import DeliveryFailed, DeliveryRejected, LedgerError
from gputally.files.credentials import Reread
from gputally.ledger.open import open_reader
from gputally.model.health import DeliveriesHealth
from gputally.process.clock import Clock
from gputally.process.log import Once
from gputally.reports.job_preemptions import JobPreemption, is_due, of_records
from gputally.reports.preemption_records import record_row, record_text

PAGE: Final = 100
"""Pending records read at once, which limits the memory."""
VERSION: Final = 1
"""Raised when a field of the document is removed or changes its meaning."""
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")
logger = logging.getLogger(__name__)
INTERVAL_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 300.0
"""Limit of the pauses, which double with each failure."""
MOST_FAILURES: Final = 5
"""After so many failures in a row the webhook is taken to be down, and other records wait too."""
REST: Final = 4
"""Ratio of the pause before the next page to the time that reading one took: thousands may be pending for an hour."""
_MOST_RETRIES: Final = 1_000
DELIVERED: Final = "delivered"
FAILED: Final = "failed"
REJECTED: Final = "rejected"
WITHDRAWN: Final = "withdrawn"
"""In the ledger: the pod had ended by itself after all."""


class DueRecord(NamedTuple):
    """A record by its ID, as a JSON document."""

    id: str
    document: bytes


class DueRecords(NamedTuple):
    """What is due among one page of the `pending` records; `withdrawn` have no victim any more.

    The next page begins after the ID `last`, None if there is none.
    """

    pending: int
    due: Sequence[DueRecord]
    withdrawn: Sequence[str]
    last: str | None


def due_records(ledger: str, *, after: str, now_us: int) -> DueRecords:
    """Read a page of the ledger at this URL, which may block. Raises: LedgerError."""
    with open_reader(ledger) as reader:
        pending = reader.pending_deliveries(after=after, limit=PAGE)
        queued_us = {each.id: each.queued_us for each in pending.page}
        found = {each.id: each for each in of_records(reader.victims(list(queued_us)))} if queued_us else {}
        complete_us = pending.pods_complete_us
        due = [
            each
            for each in found.values()
            if is_due(each, queued_us=queued_us[each.id], pods_complete_us=complete_us, now_us=now_us)
        ]
        cluster = reader.state().cluster if due else None
    return DueRecords(
        pending.total,
        [DueRecord(each.id, _document(each, cluster, now_us)) for each in due],
        sorted(queued_us.keys() - found.keys()),
        pending.page[-1].id if len(pending.page) == PAGE else None,
    )


def _document(found: JobPreemption, cluster: str | None, now_us: int) -> bytes:
    """The JSON that the webhook sends: it has no names of preemptors, since it goes to the owners of victims."""
    row = record_row(found, UTC, now_us=now_us, tiers_only=True)
    head = {"version": VERSION, "cluster": cluster, "text": record_text(row)}
    return _ENCODER.encode(head | structs.asdict(row))


class _Retry(NamedTuple):
    """When to repeat a failed delivery, by the monotonic clock, and how long the pause is."""

    at_seconds: float
    pause_seconds: float


class PreemptionWebhook:
    """Posts the records that are due, one after the other; the ledger has what was delivered.

    `url` returns the URL. Whatever the webhook does, accounting and scrapes do not wait for it.
    """

    def __init__(self, ledger: str, pipeline: Pipeline, url: Callable[[], str], *, clock: Clock) -> None:
        self._ledger = ledger
        self._pipeline = pipeline
        self._url = url
        self._clock = clock
        self._health = pipeline.health.deliveries = DeliveriesHealth(
            results=dict.fromkeys((DELIVERED, FAILED, REJECTED), 0)
        )
        self._retries: dict[str, _Retry] = {}
        self._answered: dict[str, str] = {}
        """A result that could not be written yet, by ID: no other record is posted before."""
        self._failures = Once(logger, "preemption webhook")
        self._rejections = Once(logger, "preemption webhook")
        pipeline.fleet.announce_preemptions()

    async def run(self) -> None:
        """Forever: deliver what is due; after longer and longer pauses while the webhook is down."""
        pause_seconds = INTERVAL_SECONDS
        async with ClientSession() as session:
            while True:
                before = self._done
                has_tried_all = await self.deliver_due(session)
                is_up = has_tried_all or self._done > before
                pause_seconds = INTERVAL_SECONDS if is_up else min(2 * pause_seconds, LONGEST_SECONDS)
                await sleep(pause_seconds)

    @property
    def _done(self) -> int:
        """How many records need no further attempt."""
        return self._health.results[DELIVERED] + self._health.results[REJECTED]

    async def deliver_due(self, session: ClientSession) -> bool:
        """Deliver all records that are due; False if the webhook seems to be down, or the ledger cannot be used."""
        if not self._pipeline.exposition.has_caught_up:
            return True  # further pods may have been preempted since the last process
        after: str | None = ""
        try:
            for job_preemption, result in tuple(self._answered.items()):
                await self._finish(job_preemption, result)
            while after is not None:
                started = monotonic()
                page = await to_thread(due_records, self._ledger, after=after, now_us=self._clock())
                rest_seconds = REST * (monotonic() - started)
                if not await self._deliver_page(session, page):
                    return False
                if (after := page.last) is not None:
                    await sleep(rest_seconds)
        except (LedgerError, msgspec.MsgspecError, OSError) as error:
            self._failures.warn(f"records cannot be read or marked as delivered, which is repeated: {error}")
            return False
        if not self._retries:
            self._failures.forget()
        return True

    async def _deliver_page(self, session: ClientSession, page: DueRecords) -> bool:
        self._health.pending = page.pending
        for job_preemption in page.withdrawn:
            await self._finish(job_preemption, WITHDRAWN)
        failures = 0
        for record in page.due:
            if self._is_waiting(record.id):
                continue
            failures = 0 if await self._deliver(session, record) else failures + 1
            if failures == MOST_FAILURES:
                return False
        return True

    async def _deliver(self, session: ClientSession, record: DueRecord) -> bool:
        """Post one record; False if that has to be repeated."""
        result = await self._posted(session, record)
        if result == FAILED:
            return False
        await self._finish(record.id, result)
        return True

    async def _posted(self, session: ClientSession, record: DueRecord) -> str:
        result = DELIVERED
        try:
            await post(session, self._url(), record.document, headers=headers_of(record), final=BAD_DOCUMENT)
        except DeliveryRejected as error:
            result = REJECTED
            self._rejections.warn(f"a record is not delivered, it stays in the ledger: {error}")
        except DeliveryFailed as error:
            result = FAILED
            self._retry_later(record.id)
            self._failures.warn(f"records are delivered later: {error}")
        self._health.results[result] += 1
        return result

    async def _finish(self, job_preemption: str, result: str) -> None:
        """Store the result. Raises: LedgerUnwritable; then the record is pending still."""
        self._answered[job_preemption] = result
        finish = self._pipeline.writer.ledger.finish_delivery
        await self._pipeline.writer.run_between(partial(finish, job_preemption, result, at_us=self._clock()))
        del self._answered[job_preemption]
        self._retries.pop(job_preemption, None)
        self._health.pending -= 1

    def _is_waiting(self, job_preemption: str) -> bool:
        retry = self._retries.get(job_preemption)
        return retry is not None and monotonic() < retry.at_seconds

    def _retry_later(self, job_preemption: str) -> None:
        before = self._retries.pop(job_preemption, None)
        pause_seconds = min(2 * before.pause_seconds, LONGEST_SECONDS) if before else INTERVAL_SECONDS
        self._retries[job_preemption] = _Retry(monotonic() + pause_seconds, pause_seconds)
        if len(self._retries) > _MOST_RETRIES:
            del self._retries[next(iter(self._retries))]


def url_source(path: Path) -> Callable[[], str]:
    """The URL in the file, reloaded on change. Raises: ConfigError."""
    return Reread(lambda files: webhook_url(files.of(path), flag="--preemption-webhook-url-file"))


def headers_of(record: DueRecord) -> Mapping[str, str]:
    """Headers that are equal for each attempt, so that the receiver recognises a record that it has."""
    return {"Idempotency-Key": record.id}
