"""Closes periods when they are due."""

import asyncio
import logging
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from gputally import __version__
from gputally.aggregator.pipeline import Pipeline
from gputally.answers.parameters import InvalidRequest
from gputally.errors import LedgerDamaged, LedgerError
from gputally.ledger.closed_period import ClosedPeriod, broken_chain
from gputally.ledger.open import open_reader
from gputally.model.health import ClosingHealth
from gputally.model.periods import Closing
from gputally.process.clock import Clock, zone_named
from gputally.process.log import Once
from gputally.questions.own import PeriodNow
from gputally.reports.closing import NextPeriod, next_period, period_in, unclosable
from gputally.web.ledger_process import ReportUnavailable
from gputally.web.report_processes import preview_period

logger = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 60.0
"""How often to look for a period that is due, and to repeat what failed."""


class _Position(NamedTuple):
    """The accounting start, and the end of the last closed period, if there is one (µs)."""

    start_us: int
    last_us: int | None


class PeriodCloser:
    """Closes periods of the ledger at the URL `ledger`.

    A process of its own reads the ledger, so that nothing waits for it, and the ledger's only writer writes the result.
    """

    def __init__(self, ledger: str, closing: Closing, pipeline: Pipeline, *, clock: Clock) -> None:
        self._ledger = ledger
        self._closing = closing
        self._zone = zone_named(closing.zone)
        self._pipeline = pipeline
        self._clock = clock
        self._position: _Position | None = None
        self._failure = ""
        self._unclosable = Once(logger, "closing.closed")
        self._health = pipeline.health.closing = ClosingHealth()

    async def run(self) -> None:
        """Forever: close each period when it is due."""
        while True:
            while await self.close_next():
                pass
            await asyncio.sleep(INTERVAL_SECONDS)

    async def close_next(self) -> bool:
        """Close one period, if one is due; whether one was closed. A failure is counted, and logged once."""
        if not self._pipeline.exposition.has_caught_up:
            return False  # pods that ended since the last process would still count as running
        try:
            position = self._position = self._position or await self._read_position()
            due = next_period(self._closing, zone=self._zone, start_us=position.start_us, last_us=position.last_us)
            if due is None or due.due_us > self._clock():
                return False
            await self._close(due)
        except (LedgerError, InvalidRequest, ReportUnavailable, msgspec.MsgspecError, OSError) as error:
            self._failed(str(error))
            return False
        return True

    async def _read_position(self) -> _Position:
        await self._pipeline.writer.flush()  # a new ledger has no accounting start yet
        start_us, closed = await asyncio.to_thread(self._read)
        self._health.periods = len(closed)
        self._health.last_end_us = closed[-1].end_us if closed else None
        for name in unclosable(self._closing, closed, zone=self._zone, start_us=start_us):
            self._unclosable.warn(f"{name} cannot be closed: it ended before the accounting start, or a later one is")
        return _Position(start_us, self._health.last_end_us)

    def _read(self) -> tuple[int, list[ClosedPeriod]]:
        with open_reader(self._ledger) as reader:
            closed = reader.closed_periods()
            if broken := broken_chain(closed):
                raise LedgerDamaged(f"{broken.text}; compare it with a backup: docs/closing.md#verification")
            return reader.state().accounting_start_us, closed

    async def _close(self, due: NextPeriod) -> None:
        self._pipeline.accountant.advance(now_us=self._clock())
        await self._pipeline.writer.flush()
        question = PeriodNow(name=due.name, time_zone=self._closing.zone)
        draft = period_in(await preview_period(self._ledger, question))
        book = self._pipeline.fleet.book
        period = replace(draft, closed_us=self._clock(), version=__version__, price_book=book.digest if book else "")
        period = replace(period, hash=period.computed_hash())
        await self._pipeline.writer.close_period(period)
        self._closed(period)

    def _closed(self, period: ClosedPeriod) -> None:
        assert self._position
        self._position = self._position._replace(last_us=period.end_us)
        self._health.periods, self._health.last_end_us = period.number, period.end_us
        self._failure = ""
        corrections = sum(line.of != period.number for line in period.lines)
        own = len(period.lines) - corrections
        logger.info(
            "period %s is closed: %d lines, %d corrections, hash %s", period.name, own, corrections, period.hash
        )

    def _failed(self, text: str) -> None:
        self._position = None  # what the ledger has now is read again
        self._health.failures += 1
        if text != self._failure:
            logger.error("a period could not be closed, which is repeated every minute: %s", text)
        self._failure = text
