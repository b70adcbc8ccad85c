"""What is to happen when: the one order in which everything in the simulation takes place."""

import heapq
from collections.abc import Callable, Hashable
from functools import partial
from itertools import count
from typing import Generic, TypeVar

Action = Callable[[], None]
K = TypeVar("K", bound=Hashable)


class Agenda:
    """Actions by model time (µs), those of one instant in the order they were entered.

    `now_us` is the time of the running action: what it writes does not depend on when the wall got round to it.
    """

    def __init__(self, start_us: int) -> None:
        self.now_us = start_us
        self.on_earlier: Action = lambda: None
        """Called when an action was entered that is due before all others."""
        self._entries: list[tuple[int, int, Action]] = []
        self._order = count()

    @property
    def next_us(self) -> int | None:
        """When the next action is due; None when there is none."""
        return self._entries[0][0] if self._entries else None

    def at(self, due_us: int, action: Action) -> None:
        """Run `action` at `due_us`, or at once when that has passed."""
        entry = (max(due_us, self.now_us), next(self._order), action)
        heapq.heappush(self._entries, entry)
        if self._entries[0] is entry:
            self.on_earlier()

    def after(self, delay_us: int, action: Action) -> None:
        """Run `action` once `delay_us` have passed."""
        self.at(self.now_us + delay_us, action)

    def run_until(self, us: int, *, limit: int | None = None) -> bool:
        """Run what is due by `us`, at most `limit` actions; whether nothing due is left."""
        ran = 0
        while self._entries and self._entries[0][0] <= us:
            if ran == limit:
                return False
            due_us, _, action = heapq.heappop(self._entries)
            self.now_us = due_us
            action()
            ran += 1
        self.now_us = max(self.now_us, us)
        return True

    def catch_up(self, us: int) -> None:
        """Let time pass until `us`, but not past an action that is still to run."""
        latest_us = us if self.next_us is None else min(us, self.next_us)
        self.now_us = max(self.now_us, latest_us)


class Worklist(Generic[K]):
    """Keys to reconcile soon, each once however often it was added meanwhile."""

    def __init__(self, agenda: Agenda, reconcile: Callable[[K], None]) -> None:
        self._agenda = agenda
        self._reconcile = reconcile
        self._waiting: set[K] = set()

    def add(self, key: K) -> None:
        """Reconcile `key` after what runs now."""
        if key not in self._waiting:
            self._waiting.add(key)
            self._agenda.after(0, partial(self._run, key))

    def add_after(self, delay_us: int, key: K) -> None:
        """Reconcile `key` once `delay_us` have passed."""
        self._agenda.after(delay_us, partial(self.add, key))

    def _run(self, key: K) -> None:
        self._waiting.discard(key)
        self._reconcile(key)
