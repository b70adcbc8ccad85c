"""Looks up the owners from which jobs get their names, round-robin by namespace, so that none blocks another."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Container
from contextlib import suppress
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

from msgspec import Struct

from gputally.aggregator.pipeline import Pipeline
from gputally.errors import ApiError
from gputally.kube.api import Api
from gputally.kube.failures import Failure, failure_of
from gputally.kube.owners import OwnerAnswer, Owners
from gputally.model.kube.meta import Lookup, Owner
from gputally.process.clock import Clock
from gputally.process.log import Once

MAX_LOOKUPS: Final = 8
"""Concurrent lookups."""
MAX_PER_NAMESPACE: Final = 4
"""Concurrent lookups of one namespace: slow ones leave capacity for others."""
logger = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS: Final = 10.0
LONGEST_PAUSE_SECONDS: Final = 300.0
MAX_FAILURES: Final = 6
"""Failed lookups of one owner, within about six minutes; after that its job is named by the known owners."""
_OUTAGES: Final = (Failure.UNREACHABLE, Failure.THROTTLED, Failure.FORBIDDEN)
"""Failures that do not depend on the owner; they are not counted."""
SPARE: Final = 1000
"""Tolerated number of queued owners that no pod needs any more."""


class OwnerQueue:
    """Contains each owner once: ready, delayed until a time (s, by the caller's clock), or in progress."""

    def __init__(self) -> None:
        self._ready: dict[str, deque[Owner]] = {}
        """Owners by namespace; the next one in turn is first."""
        self._delayed: list[tuple[float, int, Owner]] = []
        self._numbers = count()
        self._members: set[Owner] = set()
        self._in_progress: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._members)

    @property
    def due_s(self) -> float | None:
        """When the next delayed owner is due; None without any."""
        return self._delayed[0][0] if self._delayed else None

    def put(self, owner: Owner) -> None:
        """Add an owner, unless it is already queued or in progress."""
        if owner not in self._members:
            self._members.add(owner)
            self._append(owner)

    def take(self, now_s: float) -> Owner | None:
        """Start the next lookup; None if no owner is ready or the limits are reached."""
        while self._delayed and self._delayed[0][0] <= now_s:
            self._append(heappop(self._delayed)[2])
        if self._in_progress.total() >= MAX_LOOKUPS:
            return None
        namespace = next((each for each in self._ready if self._in_progress[each] < MAX_PER_NAMESPACE), None)
        if namespace is None:
            return None
        waiting = self._ready.pop(namespace)
        owner = waiting.popleft()
        if waiting:
            self._ready[namespace] = waiting
        self._in_progress[namespace] += 1
        return owner

    def done(self, owner: Owner, *, again_s: float | None = None) -> None:
        """A lookup ended; it is repeated at `again_s`, if given."""
        self._in_progress[owner.namespace] -= 1
        if not self._in_progress[owner.namespace]:
            del self._in_progress[owner.namespace]
        if again_s is None:
            self._members.discard(owner)
        else:
            heappush(self._delayed, (again_s, next(self._numbers), owner))

    def keep(self, wanted: Container[Owner]) -> None:
        """Remove waiting owners that are not `wanted`."""
        waiting = [owner for each in self._ready.values() for owner in each] + [entry[2] for entry in self._delayed]
        self._members -= {owner for owner in waiting if owner not in wanted}
        self._ready = {
            namespace: deque(kept)
            for namespace, each in self._ready.items()
            if (kept := [owner for owner in each if owner in wanted])
        }
        self._delayed = [entry for entry in self._delayed if entry[2] in wanted]
        heapify(self._delayed)

    def _append(self, owner: Owner) -> None:
        self._ready.setdefault(owner.namespace, deque()).append(owner)


class _Attempts(Struct):
    """Number of failed lookups of an owner, and how many of them count against it."""

    tries: int = 0
    failures: int = 0


class OwnerWalk:
    """Looks up the owners that the accounting requests, with limited concurrency; results go into the intake."""

    def __init__(self, api: Api, pipeline: Pipeline, *, clock: Clock) -> None:
        self._now = asyncio.get_running_loop().time
        self._owners = Owners(api, clock=clock, now=self._now)
        self._pipeline = pipeline
        self._walks = pipeline.fleet.owner_walks
        self._queue = OwnerQueue()
        self._changed = asyncio.Event()
        self._attempts: dict[Owner, _Attempts] = {}
        self._errors = Once(logger, "owners")

    def step(self) -> None:
        """Queue the owners requested since the last step."""
        for owner in self._walks.drain():
            self._queue.put(owner)
            self._changed.set()
        if len(self._queue) > 2 * len(self._walks.wanted) + SPARE:
            self._queue.keep(self._walks.wanted)
            self._attempts = {
                owner: attempts for owner, attempts in self._attempts.items() if owner in self._walks.wanted
            }

    async def run(self) -> None:
        """Forever: look up queued owners."""
        async with asyncio.TaskGroup() as workers:
            for number in range(MAX_LOOKUPS):
                workers.create_task(self._work(), name=f"owners {number}")

    async def _work(self) -> None:
        while True:
            owner = await self._next()
            pause_s = await self._look_up(owner)
            self._queue.done(owner, again_s=None if pause_s is None else self._now() + pause_s)
            self._changed.set()  # another lookup may start

    async def _next(self) -> Owner:
        while (owner := self._queue.take(self._now())) is None:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._queue.due_s):
                    await self._changed.wait()
        return owner

    async def _look_up(self, owner: Owner) -> float | None:
        """Look up an owner and deliver the result; returns the delay in seconds until a retry, None for no retry."""
        if owner not in self._walks.wanted:
            self._attempts.pop(owner, None)
            return None
        try:
            answer = await self._owners.look_up(owner)
        except ApiError as error:
            answer = self._failed(owner, error)
        if answer.result is not Lookup.FAILED:
            self._attempts.pop(owner, None)
        lookups = self._pipeline.health.owners.lookups
        lookups[answer.result] = lookups.get(answer.result, 0) + 1
        if answer.seen is None:
            return answer.pause_s
        await self._pipeline.intake.put([answer.seen])
        return None

    def _failed(self, owner: Owner, error: ApiError) -> OwnerAnswer:
        failure = failure_of(error)
        self._errors.warn(str(error), reason=failure)
        attempts = self._attempts.setdefault(owner, _Attempts())
        attempts.failures += failure not in _OUTAGES
        if attempts.failures >= MAX_FAILURES:
            return self._owners.unknown(Lookup.GIVEN_UP, owner)
        pause_s = min(FIRST_PAUSE_SECONDS * 2**attempts.tries, LONGEST_PAUSE_SECONDS)
        attempts.tries = min(attempts.tries + 1, MAX_FAILURES)
        return OwnerAnswer(Lookup.FAILED, pause_s=pause_s)
