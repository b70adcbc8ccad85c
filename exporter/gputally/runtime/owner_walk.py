"""Asking for the owners that jobs are named by."""

import asyncio
import logging
from asyncio import sleep
from typing import Final

from gputally.errors import ApiError
from gputally.model.kube import OwnerReference
from gputally.runtime.books import Books
from gputally.runtime.clock import Clock
from gputally.sources.api import Api
from gputally.sources.once import Once
from gputally.sources.owners import Owners

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 10.0


class OwnerWalk:
    """Fetches the owners the accounting wants, each by a task of `tasks`; what they are goes into the backlog."""

    def __init__(self, api: Api, books: Books, *, clock: Clock, tasks: asyncio.TaskGroup) -> None:
        self._owners = Owners(api, clock=clock)
        self._books = books
        self._tasks = tasks
        self._asked: set[str] = set()
        self._trouble = Once(logger, "owners")

    def step(self) -> None:
        """Ask for those not asked for yet."""
        for uid, (reference, namespace) in self._books.fleet.pods.walks.wanted.items():
            if uid not in self._asked:
                self._asked.add(uid)
                self._tasks.create_task(self._ask(reference, namespace), name=f"owner {reference.name}")

    async def _ask(self, reference: OwnerReference, namespace: str) -> None:
        """Without an answer the walk ends at what is known, until it is tried again."""
        try:
            await self._books.backlog.put([await self._owners.owner(reference, namespace=namespace)])
        except ApiError as error:
            self._trouble.warn(str(error))
            await sleep(RETRY_SECONDS)
        finally:
            self._asked.discard(reference.uid)
