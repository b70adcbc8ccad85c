"""Looking up the owners that jobs are named by."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from msgspec import Struct

from gputally.aggregator.owner_queue import AT_ONCE, OwnerQueue
from gputally.aggregator.pipeline import Pipeline
from gputally.errors import ApiError
from gputally.kube.api import Api
from gputally.kube.failures import Failure, failure_of
from gputally.kube.owners import OwnerAnswer, Owners
from gputally.model.owner import Lookup, Owner
from gputally.process.clock import Clock
from gputally.process.once import Once

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 10.0
LONGEST_PAUSE_SECONDS: Final = 300.0
MOST_TRIES: Final = 6
"""Of an owner for which the server fails, within some six minutes; then its job is named by what is known."""
_OUTAGES: Final = (Failure.UNREACHABLE, Failure.THROTTLED, Failure.FORBIDDEN)
"""Failures that are no owner's: such tries are not counted."""
SPARE: Final = 1000
"""Owners that may wait though no pod wants them any more."""


class _Trial(Struct):
    """How often an owner was tried in vain, and how often that was because the server failed for it."""

    tries: int = 0
    failures: int = 0


class OwnerWalk:
    """Looks up the owners the accounting wants, a fixed number at a time; what they are goes into the intake."""

    def __init__(self, api: Api, pipeline: Pipeline, *, clock: Clock) -> None:
        self._now = asyncio.get_running_loop().time
        self._owners = Owners(api, clock=clock, now=self._now)
        self._pipeline = pipeline
        self._walks = pipeline.fleet.pods.walks
        self._queue = OwnerQueue()
        self._changed = asyncio.Event()
        self._trials: dict[Owner, _Trial] = {}
        self._trouble = Once(logger, "owners")

    def step(self) -> None:
        """Queue what is wanted since the last step."""
        for owner in self._walks.drain():
            self._queue.put(owner)
            self._changed.set()
        if len(self._queue) > 2 * len(self._walks.wanted) + SPARE:
            self._queue.keep(self._walks.wanted)
            self._trials = {owner: trial for owner, trial in self._trials.items() if owner in self._walks.wanted}

    async def run(self) -> None:
        """For ever: look up what is queued."""
        async with asyncio.TaskGroup() as workers:
            for number in range(AT_ONCE):
                workers.create_task(self._work(), name=f"owners {number}")

    async def _work(self) -> None:
        while True:
            owner = await self._next()
            pause_s = await self._look_up(owner)
            self._queue.done(owner, again_s=None if pause_s is None else self._now() + pause_s)
            self._changed.set()  # its place is free

    async def _next(self) -> Owner:
        while (owner := self._queue.take(self._now())) is None:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._queue.due_s):
                    await self._changed.wait()
        return owner

    async def _look_up(self, owner: Owner) -> float | None:
        """Hand on what is found; returns after how many seconds to look again, None for never."""
        if owner not in self._walks.wanted:
            self._trials.pop(owner, None)
            return None
        try:
            answer = await self._owners.look_up(owner)
        except ApiError as error:
            answer = self._failed(owner, error)
        if answer.result is not Lookup.FAILED:
            self._trials.pop(owner, None)
        lookups = self._pipeline.health.owners.lookups
        lookups[answer.result] = lookups.get(answer.result, 0) + 1
        if answer.seen is None:
            return answer.pause_s
        await self._pipeline.intake.put([answer.seen])
        return None

    def _failed(self, owner: Owner, error: ApiError) -> OwnerAnswer:
        failure = failure_of(error)
        self._trouble.warn(str(error), reason=failure)
        trial = self._trials.setdefault(owner, _Trial())
        trial.failures += failure not in _OUTAGES
        if trial.failures >= MOST_TRIES:
            return self._owners.unknown(Lookup.GIVEN_UP, owner)
        pause_s = min(FIRST_PAUSE_SECONDS * 2**trial.tries, LONGEST_PAUSE_SECONDS)
        trial.tries = min(trial.tries + 1, MOST_TRIES)
        return OwnerAnswer(Lookup.FAILED, pause_s=pause_s)
