"""The one who changes the fleet: takes in what was observed, and gives out what it comes to."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from gputally.accounting.changes import Changes
from gputally.accounting.fleet import Fleet
from gputally.accounting.snapshot import Snapshot, publish
from gputally.errors import MalformedObject
from gputally.model.health import Health
from gputally.model.observation import Deleted, Observation, Upserted
from gputally.process.once import Once

logger = logging.getLogger(__name__)

LINGER_SECONDS: Final = 0.1
"""How long news of a pod may wait for more of it; whoever looks in between sees it accounted."""


class Accountant:
    """The fleet, changed by one task only.

    Should anything but a malformed object end what it does, the fleet is half changed: nothing of it is given out any
    more.
    """

    def __init__(self, fleet: Fleet, health: Health) -> None:
        self.fleet = fleet
        self.changed = asyncio.Event()
        """Set when anything was taken in; whoever writes that down clears it."""
        self.is_sound = True
        self._health = health
        self._news = asyncio.Event()
        self._warned: set[str] = set()
        self._malformed = Once(logger, "excluded from the accounting")

    def take(self, observations: Iterable[Observation]) -> None:
        """Take in `observations`. One that contradicts itself is counted, logged and left out."""
        with self._changing():
            for observation in observations:
                try:
                    self.fleet.observe(observation)
                except MalformedObject as error:
                    self._skip(observation, error)
        self._warn_of_agents()
        self._news.set()
        self.changed.set()

    async def keep_reconciled(self, then: Callable[[], None]) -> None:
        """For ever: account what was taken in, once what comes with it is there too; `then` do what follows from it."""
        while True:
            await self._news.wait()
            self._news.clear()
            await asyncio.sleep(LINGER_SECONDS)
            with self._changing():
                self.fleet.reconcile()
            then()

    def publish(self, *, now_us: int, difference: tuple[int, int] | None) -> Snapshot:
        """The snapshot to export at `now_us`. `difference` is the ledger's, see `snapshot.publish`."""
        with self._changing():
            return publish(self.fleet, now_us=now_us, ledger=difference)

    def drain(self) -> Changes:
        """What is to be written, which has changed since the last call."""
        with self._changing():
            return self.fleet.drain()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        if not self.is_sound:
            raise RuntimeError("the accounting has failed; its error ends the process")
        self.is_sound = False
        yield
        self.is_sound = True

    def _skip(self, observation: Observation, error: MalformedObject) -> None:
        if isinstance(observation, Upserted | Deleted):
            skipped = self._health.skipped
            skipped[observation.kind] = skipped.get(observation.kind, 0) + 1
        self._malformed.warn(str(error))

    def _warn_of_agents(self) -> None:
        """Once of each that tells what cannot be."""
        faulty = self.fleet.usage.pending.faulty
        if len(faulty) > len(self._warned):
            for node in faulty.keys() - self._warned:
                logger.warning("some usage that the agent on %s reports is excluded: %s", node, faulty[node].value)
            self._warned.update(faulty)
