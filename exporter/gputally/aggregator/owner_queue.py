"""The order in which owners are looked up: by turns of the namespaces, so that none waits for all of another's."""

from collections import Counter, deque
from collections.abc import Container
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

from gputally.model.owner import Owner

AT_ONCE: Final = 8
"""Lookups at the same time."""
MOST_OF_ONE: Final = 4
"""So many of them at most for one namespace: slow ones leave room for others."""


class OwnerQueue:
    """Each owner is in it once: ready, put off until a time (s, by the caller's clock), or being looked up."""

    def __init__(self) -> None:
        self._ready: dict[str, deque[Owner]] = {}
        """By namespace; the one whose turn is next comes first."""
        self._later: list[tuple[float, int, Owner]] = []
        self._numbers = count()
        self._members: set[Owner] = set()
        self._busy: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._members)

    @property
    def due_s(self) -> float | None:
        """When the next of those put off is due; None when there is none."""
        return self._later[0][0] if self._later else None

    def put(self, owner: Owner) -> None:
        """Have an owner looked up, unless it is to be."""
        if owner not in self._members:
            self._members.add(owner)
            self._append(owner)

    def take(self, now_s: float) -> Owner | None:
        """The next to be looked up, if there is one and a place for it."""
        while self._later and self._later[0][0] <= now_s:
            self._append(heappop(self._later)[2])
        if self._busy.total() >= AT_ONCE:
            return None
        namespace = next((each for each in self._ready if self._busy[each] < MOST_OF_ONE), None)
        if namespace is None:
            return None
        waiting = self._ready.pop(namespace)
        owner = waiting.popleft()
        if waiting:
            self._ready[namespace] = waiting
        self._busy[namespace] += 1
        return owner

    def done(self, owner: Owner, *, again_s: float | None = None) -> None:
        """A lookup ended; the owner is looked up again at `again_s`, if that is given."""
        self._busy[owner.namespace] -= 1
        if not self._busy[owner.namespace]:
            del self._busy[owner.namespace]
        if again_s is None:
            self._members.discard(owner)
        else:
            heappush(self._later, (again_s, next(self._numbers), owner))

    def keep(self, wanted: Container[Owner]) -> None:
        """Drop those that wait and are not `wanted`."""
        waiting = [owner for each in self._ready.values() for owner in each] + [entry[2] for entry in self._later]
        self._members -= {owner for owner in waiting if owner not in wanted}
        self._ready = {
            namespace: deque(kept)
            for namespace, each in self._ready.items()
            if (kept := [owner for owner in each if owner in wanted])
        }
        self._later = [entry for entry in self._later if entry[2] in wanted]
        heapify(self._later)

    def _append(self, owner: Owner) -> None:
        self._ready.setdefault(owner.namespace, deque()).append(owner)
