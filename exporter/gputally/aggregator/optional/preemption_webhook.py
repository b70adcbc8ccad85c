"""Delivers the record of each preemption of a job to a webhook, at least once."""

import logging
from asyncio import sleep, to_thread
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

import msgspec
from aiohttp import ClientSession

from gputally.aggregator.optional.due_records import DueRecord, DueRecords, due_records
from gputally.aggregator.pipeline import Pipeline
from gputally.client.webhook import BAD_DOCUMENT, post, webhook_url
from gputally.errors import DeliveryFailed, DeliveryRejected, LedgerError
from gputally.files.reread import Reread
from gputally.model.health import DeliveriesHealth
from gputally.process.clock import Clock
from gputally.process.once import Once

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
        pipeline.fleet.disrupted.disruptions.announces = True

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
    """The same for each attempt: the receiver recognises a record that it has."""
    return {"Idempotency-Key": record.id}
