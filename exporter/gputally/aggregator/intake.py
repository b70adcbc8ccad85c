"""What was read and is not yet accounted: one queue."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from gputally.model.kube import Kind
from gputally.model.observation import Observation, RelistFinished, Unavailable

LIMIT: Final = 10_000
"""Observations that may wait to be accounted before whoever brings them is held back."""


class Intake:
    """Batches of observations in the order they came.

    Objects are classified by those of the kinds that come `first`. All others are read meanwhile, and wait until these
    are listed.
    """

    def __init__(self, first: Iterable[Kind] = (), *, limit: int = LIMIT) -> None:
        self.listed = {kind: asyncio.Event() for kind in Kind}
        """Set once a complete listing of the kind is accounted, or none can be had."""
        self._first = frozenset(first)
        self._ready = _Queue(limit)
        self._held = _Queue(limit) if self._first else self._ready
        self._news = asyncio.Event()
        self._room = asyncio.Event()

    @property
    def size(self) -> int:
        """Observations that wait."""
        return self._ready.size + (0 if self._held is self._ready else self._held.size)

    async def put(self, batch: list[Observation], kind: Kind | None = None) -> None:
        """Add a batch, once fewer than the limit wait: a batch is never cut, so they may pass it.

        Args:
            batch: What one watch brought, or an answer to what was asked.
            kind: Whose watch brought it.
        """
        while (queue := self._queue_of(kind)).is_full:  # another may have been faster
            self._room.clear()
            await self._room.wait()
        queue.append(batch)
        self._news.set()

    async def get(self) -> list[Observation]:
        """Take the oldest batch that can be accounted, once there is one."""
        while not self._ready.batches:
            self._news.clear()
            await self._news.wait()
        self._room.set()
        return self._ready.pop()

    def accounted(self, batch: Iterable[Observation]) -> None:
        """Note which listings were in a batch that is accounted now."""
        for observation in batch:
            if isinstance(observation, RelistFinished | Unavailable):
                self.listed[observation.kind].set()

    async def release(self) -> None:
        """Once the first kinds are listed: let what waited for them be accounted, and what follows wait no more."""
        for kind in self._first:
            await self.listed[kind].wait()
        held, self._held = self._held, self._ready
        while held is not self._ready and held.batches:
            self._ready.append(held.pop())
        self._news.set()
        self._room.set()

    def _queue_of(self, kind: Kind | None) -> "_Queue":
        return self._ready if kind is None or kind in self._first else self._held


class _Queue:
    """Batches, and how many observations they hold."""

    def __init__(self, limit: int) -> None:
        self.batches = deque[list[Observation]]()
        self.size = 0
        self._limit = limit

    @property
    def is_full(self) -> bool:
        return self.size >= self._limit

    def append(self, batch: list[Observation]) -> None:
        self.batches.append(batch)
        self.size += len(batch)

    def pop(self) -> list[Observation]:
        batch = self.batches.popleft()
        self.size -= len(batch)
        return batch
