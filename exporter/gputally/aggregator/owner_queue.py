"""The order of owner lookups: round-robin by namespace, so that no namespace blocks another."""

from collections import Counter, deque
from collections.abc import Container
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

from gputally.model.kube.meta import Owner

MAX_LOOKUPS: Final = 8
"""Concurrent lookups."""
MAX_PER_NAMESPACE: Final = 4
"""Concurrent lookups of one namespace: slow ones leave capacity for others."""


class OwnerQueue:
    """Contains each owner once: ready, delayed until a time (s, by the caller's clock), or in progress."""

    def __init__(self) -> None:
        self._ready: dict[str, deque[Owner]] = {}
        """By namespace; the next one in turn is first."""
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
