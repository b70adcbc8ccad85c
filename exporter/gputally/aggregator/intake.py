"""The queue of observations that are not yet accounted."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from gputally.model.kube.kinds import Kind
from gputally.model.observation import Observation, RelistFinished, Unavailable

LIMIT: Final = 10_000
"""Number of queued observations above which `put` blocks."""


class Intake:
    """Batches of observations in order of arrival.

    The kinds in `first` classify all other objects, which are read meanwhile and wait until these are listed. `kinds`
    are those that are watched.
    """

    def __init__(self, first: Iterable[Kind] = (), *, kinds: Iterable[Kind] = Kind, limit: int = LIMIT) -> None:
        self.listed = {kind: asyncio.Event() for kind in kinds}
        """Set once a complete list of the kind is accounted, or the kind is unavailable."""
        self.released = asyncio.Event()
        """Set once the first kinds are listed."""
        self._first = frozenset(first)
        self._ready = _Queue(limit)
        self._held = _Queue(limit) if self._first else self._ready
        self._updated = asyncio.Event()
        self._room = asyncio.Event()
        self._awaited: dict[int, asyncio.Event] = {}
        """Events by the identity of queued batches that `put_and_wait` has added."""

    @property
    def size(self) -> int:
        """Number of queued observations."""
        return self._ready.size + (0 if self._held is self._ready else self._held.size)

    async def put(self, batch: list[Observation], kind: Kind | None = None) -> None:
        """Add a batch once the queue is below its limit; batches are never split, so one may exceed it.

        Args:
            batch: Observations of one watch, or the result of a request.
            kind: The kind of the watch.
        """
        while (queue := self._queue_of(kind)).is_full:  # another task may have filled it again
            self._room.clear()
            await self._room.wait()
        queue.append(batch)
        self._updated.set()

    async def put_and_wait(self, batch: list[Observation], kind: Kind) -> None:
        """Add a batch, and wait until it is accounted: objects as large as an API server stores must not pile up."""
        self._awaited[id(batch)] = accounted = asyncio.Event()
        try:
            await self.put(batch, kind)
            await accounted.wait()
        finally:
            self._awaited.pop(id(batch), None)

    async def get(self) -> list[Observation]:
        """Wait for, and remove, the oldest batch that can be accounted."""
        while not self._ready.batches:
            self._updated.clear()
            await self._updated.wait()
        self._room.set()
        return self._ready.pop()

    def accounted(self, batch: Iterable[Observation]) -> None:
        """Record the lists that an accounted batch completes."""
        if awaited := self._awaited.get(id(batch)):
            awaited.set()
        for observation in batch:
            if isinstance(observation, RelistFinished | Unavailable):
                self.listed[observation.kind].set()

    async def release(self) -> None:
        """After the first kinds are listed, release the batches that waited for them, and hold no more back."""
        for kind in self._first:
            await self.listed[kind].wait()
        held, self._held = self._held, self._ready
        while held is not self._ready and held.batches:
            self._ready.append(held.pop())
        self._updated.set()
        self._room.set()
        self.released.set()

    def _queue_of(self, kind: Kind | None) -> "_Queue":
        return self._ready if kind is None or kind in self._first else self._held


class _Queue:
    """Batches, and the number of their observations."""

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
