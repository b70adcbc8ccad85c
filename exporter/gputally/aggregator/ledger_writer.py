"""Writes accounting changes to the ledger asynchronously."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from gputally.accounting.changes import Changes
from gputally.aggregator.accountant import Accountant
from gputally.errors import LedgerUnwritable
from gputally.ledger.closed_period import ClosedPeriod
from gputally.ledger.protocol import Ledger
from gputally.model.health import LedgerHealth
from gputally.process.clock import Clock

if TYPE_CHECKING:
    from gputally.accounting.totals.total import Lines

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

ROOM: Final = 500_000
"""Limit of pending rows in memory (some 500 MiB), above which the watches pause; the API server keeps later events."""
FLUSH_SECONDS: Final = 0.25
UNHURRIED_SECONDS: Final = 5.0
"""How long changes wait that the next process would get again: the report of one agent is not worth a write."""
BUSY_TURNS: Final = 20
"""Maximum number of such pauses in a row while the accounting is busy, which writing would slow down."""
RETRY_SECONDS: Final = 1.0


class LedgerWriter:
    """Writes the accountant's changes, from its own thread."""

    def __init__(
        self,
        ledger: Ledger,
        accountant: Accountant,
        health: LedgerHealth,
        *,
        clock: Clock,
        is_busy: Callable[[], bool],
    ) -> None:
        self.ledger = ledger
        self.health = health
        self.room = asyncio.Event()
        """Set while the pending rows are below ROOM."""
        self.room.set()
        self.differences: Lines = {}
        """The sums of the counters minus those of the ledger's rows at the last write; empty before it."""
        self._accountant = accountant
        self._clock = clock
        self._is_busy = is_busy
        self._unwritten: Changes | None = None
        self._writing = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")

    async def flush(self) -> None:
        """Write all pending changes. If that fails, they stay pending and are written with the next ones."""
        async with self._writing:
            self._accountant.changed.clear()
            self._accountant.must_write_soon.clear()
            changes = self._unwritten = self._pending()  # kept until they are written
            started_ns = time.monotonic_ns()
            try:
                loop = asyncio.get_running_loop()
                self.differences = await loop.run_in_executor(self._thread, self.ledger.write, changes)
                self._write_succeeded(time.monotonic_ns() - started_ns)
            except LedgerUnwritable as error:
                self._write_failed(changes, error)
            finally:
                if self._unwritten:
                    self._accountant.changed.set()
                    self._accountant.must_write_soon.set()

    async def run_between(self, call: Callable[[], Result]) -> Result:
        """Run a short call in the thread that writes, between two writes."""
        async with self._writing:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def close_period(self, period: ClosedPeriod) -> None:
        """Append the closed period to the ledger. Raises: LedgerError."""
        await self.run_between(partial(self.ledger.close_period, period))

    async def keep_flushed(self) -> None:
        """Forever: write the ledger soon after each change, or after UNHURRIED_SECONDS if none must be written soon."""
        while True:
            await self._accountant.changed.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(UNHURRIED_SECONDS):
                    await self._accountant.must_write_soon.wait()
            await self._wait_while_busy()
            if self._accountant.changed.is_set():  # a scrape may have written it
                await self.flush()
                await asyncio.sleep(RETRY_SECONDS if self._unwritten else FLUSH_SECONDS)

    async def _wait_while_busy(self) -> None:
        """Wait while the accounting is busy, but at most BUSY_TURNS times FLUSH_SECONDS."""
        for _ in range(BUSY_TURNS):
            if not self._is_busy():
                break
            await asyncio.sleep(FLUSH_SECONDS)

    def close(self) -> None:
        """Write the pending changes and stop the thread. Blocks; call it after all tasks have ended.

        Raises: LedgerUnwritable if pending changes cannot be written.
        """
        try:
            if self._accountant.is_sound:
                self._accountant.fleet.advance(self._clock())
                self._write_last(self._pending())
        finally:
            self._thread.shutdown()

    def _write_last(self, changes: Changes) -> None:
        try:
            self._thread.submit(self.ledger.write, changes).result()
        except LedgerUnwritable as error:
            raise LedgerUnwritable(
                f"{error}; {changes.weight} rows were not written; the next start recovers from them "
                "what the API server still knows"
            ) from None

    def _pending(self) -> Changes:
        changes = self._accountant.drain()
        return self._unwritten.followed_by(changes) if self._unwritten else changes

    def _write_failed(self, changes: Changes, error: LedgerUnwritable) -> None:
        health = self.health
        if health.writable:
            logger.error("%s; accounting continues in memory, and is written when the ledger is writable again", error)
        self._unwritten, health.writable = changes, False
        health.failures += 1
        health.waiting = changes.weight
        if changes.weight > ROOM:
            self.room.clear()

    def _write_succeeded(self, duration_ns: int) -> None:
        health = self.health
        if not health.writable:
            logger.info("the ledger is writable again: %d waiting rows were written", health.waiting)
        self._unwritten, health.writable, health.waiting = None, True, 0
        self.room.set()
        health.writes += 1
        health.write_us += duration_ns // 1000
        health.last_write_us = self._clock()
