"""Between the accounting, which is instant, and the ledger, which takes its time."""

import asyncio
import logging
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from gputally import __version__
from gputally.accounting.changes import Changes
from gputally.accounting.fleet import Fleet
from gputally.accounting.snapshot import Snapshot, publish
from gputally.aggregator.backlog import Backlog
from gputally.catalog.all import FLEET, HEALTH
from gputally.errors import LedgerUnwritable, MalformedObject
from gputally.export.process import process_registry
from gputally.export.text import registry_text, render
from gputally.ledger.protocol import Ledger
from gputally.model.health import Health, LedgerHealth, WatchHealth
from gputally.model.kube import Kind
from gputally.model.observation import Gone, Listed, Observation, Seen, Unavailable
from gputally.process.clock import Clock
from gputally.process.once import Once

logger = logging.getLogger(__name__)

ROOM: Final = 500_000
"""Rows that may wait in memory (some 500 MiB) before the watches are held back; the API server keeps what follows."""
FLUSH_SECONDS: Final = 0.25
BUSY_TURNS: Final = 20
"""How often in a row such a time is waited while there is much to account, which writing would slow down."""
RETRY_SECONDS: Final = 1.0


class Books:
    """The fleet and its ledger. The fleet is changed by one task only; the ledger is written by one thread only."""

    def __init__(self, fleet: Fleet, ledger: Ledger, *, clock: Clock, watches: tuple[WatchHealth, ...]) -> None:
        self.fleet = fleet
        self.health = Health(version=__version__, python=sys.version.split()[0], watches=watches, ledger=LedgerHealth())
        self.backlog = Backlog()
        """To be accounted."""
        self.held = Backlog()
        """To be accounted once what classifies it is known."""
        self.news = asyncio.Event()
        """Set while anything was taken in and not settled."""
        self.listed = {kind: asyncio.Event() for kind in Kind}
        """Set once a complete listing of the kind is accounted, or none can be had."""
        self.room = asyncio.Event()
        """Set while few enough rows wait in memory."""
        self.room.set()
        self.ledger = ledger
        self._clock = clock
        self._warned: set[str] = set()
        self._sound = True
        self._malformed = Once(logger, "left out of the accounting")
        self._residual: tuple[int, int] | None = None
        self._unwritten: Changes | None = None
        self._writing = asyncio.Lock()
        self._scraping = asyncio.Lock()
        self._dirty = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._registry = process_registry()
        self._committed = publish(fleet, now_us=fleet.totals.evaluated_us, ledger=None)
        """What was published last and is in the ledger; at first, by the process before."""
        self._caught_up = False

    @property
    def behind(self) -> int:
        """Observations read and not yet accounted."""
        return self.backlog.size + self.held.size

    @property
    def has_caught_up(self) -> bool:
        """Whether what happened while nobody watched is accounted, as far as it counts GPU-time; true for good then."""
        if not self._caught_up:
            counting = (watch for watch in self.health.watches if watch.kind is not Kind.EVENTS)
            self._caught_up = all(watch.settled for watch in counting) and not self.behind
        return self._caught_up

    def take(self, observations: Iterable[Observation]) -> None:
        """Take in `observations`, to be settled soon. One that contradicts itself is counted, logged and left out.

        Should anything else be raised, the fleet is half changed: nothing of it is published or written any more.
        """
        self._sound = False
        for observation in observations:
            try:
                self.fleet.take_in(observation)
            except MalformedObject as error:
                self._skip(observation, error)
            if isinstance(observation, Listed | Unavailable):
                self.listed[observation.kind].set()
        self._sound = True
        self._warn_of_agents()
        self.news.set()
        self._dirty.set()

    def settle(self) -> None:
        """Account what was taken in and has waited for more about the same pods."""
        self._expect_sound()
        self.news.clear()
        self._sound = False
        self.fleet.settle()
        self._sound = True

    async def flush(self) -> None:
        """Bring the ledger up to date. What it refuses is kept, and written with what follows."""
        async with self._writing:
            self._dirty.clear()
            changes = self._unwritten = self._pending()  # until it is written, whatever happens meanwhile
            started_ns = time.monotonic_ns()
            try:
                loop = asyncio.get_running_loop()
                self._residual = await loop.run_in_executor(self._thread, self.ledger.write, changes)
                self._written(time.monotonic_ns() - started_ns)
            except LedgerUnwritable as error:
                self._refused(changes, error)
            finally:
                if self._unwritten:
                    self._dirty.set()

    async def keep_flushed(self) -> None:
        """For ever: bring the ledger up to date soon after anything changed."""
        while True:
            await self._dirty.wait()
            await self._lull()
            await self.flush()
            await asyncio.sleep(RETRY_SECONDS if self._unwritten else FLUSH_SECONDS)

    async def _lull(self) -> None:
        """Return when there is little to account, or after some time of much."""
        for _ in range(BUSY_TURNS):
            if not self.behind and not self.fleet.is_listing:
                break
            await asyncio.sleep(FLUSH_SECONDS)

    async def scrape(self, openmetrics: bool) -> bytes:  # noqa: FBT001 - the shape the web side asks for
        """The exposition as of now. What its counters say is in the ledger before it is returned.

        They stand still until all is told that happened while no process watched: a pod that ended meanwhile would be
        shown as if it had run on. So they do while the ledger refuses writes, as the next process could not go on from
        more; gauges follow.
        """
        async with self._scraping:  # of two at once, one might take back what the other has shown
            self.settle()
            now_us = self._clock() if self.has_caught_up else self.fleet.totals.evaluated_us
            snapshot = publish(self.fleet, now_us=now_us, ledger=self._residual)
            if self.health.ledger.writable:
                exposition = await self._written_with(snapshot, openmetrics=openmetrics)
            if self.health.ledger.writable:
                self._committed = snapshot
                return exposition
            self.fleet.totals.withdraw()
            return self._exposition(snapshot, counters=self._committed, openmetrics=openmetrics)

    async def _written_with(self, snapshot: Snapshot, *, openmetrics: bool) -> bytes:
        """The exposition of `snapshot`, made while the ledger is brought up to date."""
        writing = asyncio.create_task(self.flush(), name="scrape's flush")
        try:
            await asyncio.sleep(0)  # it begins, and most of it needs no interpreter
            return self._exposition(snapshot, counters=snapshot, openmetrics=openmetrics)
        finally:
            await writing

    def _exposition(self, snapshot: Snapshot, *, counters: Snapshot, openmetrics: bool) -> bytes:
        self.health.queued = self.behind
        fleet = ((metric, metric.rows(counters if metric.grows else snapshot)) for metric in FLEET)
        own = ((metric, metric.rows(self.health)) for metric in HEALTH)
        more = registry_text(self._registry, openmetrics=openmetrics)
        return render((*fleet, *own), openmetrics=openmetrics, more=more)

    def close(self) -> None:
        """Write what is left and let the thread go. It blocks: when it is called, nothing else runs any more.

        Raises: LedgerUnwritable when something is left that cannot be written.
        """
        try:
            if self._sound:
                self.fleet.advance(self._clock())
                self._write_last(self._pending())
        finally:
            self._thread.shutdown()

    def _write_last(self, changes: Changes) -> None:
        try:
            self._thread.submit(self.ledger.write, changes).result()
        except LedgerUnwritable as error:
            raise LedgerUnwritable(
                f"{error}; {changes.weight} rows were not written, of which the next start learns anew "
                "what the API server still knows"
            ) from None

    def _pending(self) -> Changes:
        self.settle()
        fresh = self.fleet.drain()
        return self._unwritten.followed_by(fresh) if self._unwritten else fresh

    def _expect_sound(self) -> None:
        if not self._sound:
            raise RuntimeError("the accounting has failed; its error ends the process")

    def _skip(self, observation: Observation, error: MalformedObject) -> None:
        if isinstance(observation, Seen | Gone):
            skipped = self.health.skipped
            skipped[observation.kind] = skipped.get(observation.kind, 0) + 1
        self._malformed.warn(str(error))

    def _warn_of_agents(self) -> None:
        """Once of each that tells what cannot be."""
        faulty = self.fleet.usage.noted.faulty
        if len(faulty) > len(self._warned):
            for node in faulty.keys() - self._warned:
                logger.warning("some usage that the agent on %s tells is left out: %s", node, faulty[node].value)
            self._warned.update(faulty)

    def _refused(self, changes: Changes, error: LedgerUnwritable) -> None:
        health = self.health.ledger
        if health.writable:
            logger.error("%s; accounting goes on in memory, and is written when that is possible again", error)
        self._unwritten, health.writable = changes, False
        health.failures += 1
        health.waiting = changes.weight
        if changes.weight > ROOM:
            self.room.clear()

    def _written(self, took_ns: int) -> None:
        health = self.health.ledger
        if not health.writable:
            logger.info("the ledger can be written again: %d rows that waited are in it", health.waiting)
        self._unwritten, health.writable, health.waiting = None, True, 0
        self.room.set()
        health.writes += 1
        health.write_us += took_ns // 1000
        health.last_write_us = self._clock()
