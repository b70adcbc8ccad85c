"""Runs explanations in a thread, a few at a time, so that they delay no scrape and no event for long."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

MAX_EXPLAINING: Final = 2
"""At the same time."""
MAX_QUEUED: Final = 16
"""Further requests are rejected."""

T = TypeVar("T")


class TooBusy(Exception):
    """Too many requests wait; try again."""


class Evaluation:
    """Takes turns: each snapshot is taken when its turn has come, so that none waits in memory."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(MAX_EXPLAINING)
        self._waiting = 0

    async def run(self, read: Callable[[], T], explain: Callable[[T], bytes]) -> bytes:
        """What `explain` makes in a thread of what `read` reads here. Raises: TooBusy, and what `explain` raises."""
        if self._waiting >= MAX_QUEUED:
            raise TooBusy
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(explain, read())
        finally:
            self._waiting -= 1
