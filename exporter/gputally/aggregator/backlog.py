"""What was read and is not yet accounted."""

import asyncio
from typing import Final

from gputally.model.observation import Observation

LIMIT: Final = 10_000
"""Observations that may wait to be accounted before the watches are held back."""


class Backlog:
    """Batches of observations in the order they came; `size` observations wait in all."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.size = 0
        self._limit = limit
        self._batches = asyncio.Queue[list[Observation]]()
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_full(self) -> bool:
        """Whether no further batch is let in."""
        return self.size >= self._limit

    async def put(self, batch: list[Observation]) -> None:
        """Add a batch, once fewer than the limit wait: a batch is never cut, so they may pass it."""
        while self.is_full:  # another may have been faster
            await self._room.wait()
        self.size += len(batch)
        self._batches.put_nowait(batch)
        self._see_to_room()

    async def get(self) -> list[Observation]:
        """Take the oldest batch, once there is one."""
        batch = await self._batches.get()
        self.size -= len(batch)
        self._see_to_room()
        return batch

    def _see_to_room(self) -> None:
        if self.is_full:
            self._room.clear()
        else:
            self._room.set()
