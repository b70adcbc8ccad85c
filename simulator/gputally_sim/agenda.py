"""The event queue of the simulation; it defines the order of all actions."""

import heapq
from collections.abc import Callable, Hashable
from functools import partial
from itertools import count
from typing import Generic, TypeVar

Action = Callable[[], None]
K = TypeVar("K", bound=Hashable)


class Agenda:
    """Actions ordered by simulated time (µs), and by insertion order at the same time.

    `now_us` is the due time of the running action, so its writes do not depend on the wall clock.
    """

    def __init__(self, start_us: int) -> None:
        self.now_us = start_us
        self.on_earlier: Action = lambda: None
        """Called when an action is added that is due before all others."""
        self._entries: list[tuple[int, int, Action]] = []
        self._order = count()

    @property
    def next_us(self) -> int | None:
        """The due time of the next action, or None."""
        return self._entries[0][0] if self._entries else None

    def at(self, due_us: int, action: Action) -> None:
        """Run `action` at `due_us`, or immediately if that time has passed."""
        entry = (max(due_us, self.now_us), next(self._order), action)
        heapq.heappush(self._entries, entry)
        if self._entries[0] is entry:
            self.on_earlier()

    def after(self, delay_us: int, action: Action) -> None:
        """Run `action` after `delay_us`."""
        self.at(self.now_us + delay_us, action)

    def run_until(self, us: int, *, limit: int | None = None) -> bool:
        """Run actions due by `us`, at most `limit`; return whether all of them have run."""
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
        """Advance the time to `us`, but not beyond the next pending action."""
        latest_us = us if self.next_us is None else min(us, self.next_us)
        self.now_us = max(self.now_us, latest_us)


class Worklist(Generic[K]):
    """A deduplicating queue of keys to reconcile."""

    def __init__(self, agenda: Agenda, reconcile: Callable[[K], None]) -> None:
        self._agenda = agenda
        self._reconcile = reconcile
        self._pending: set[K] = set()

    def add(self, key: K) -> None:
        """Reconcile `key` after the current action."""
        if key not in self._pending:
            self._pending.add(key)
            self._agenda.after(0, partial(self._run, key))

    def add_after(self, delay_us: int, key: K) -> None:
        """Reconcile `key` after `delay_us`."""
        self._agenda.after(delay_us, partial(self.add, key))

    def _run(self, key: K) -> None:
        self._pending.discard(key)
        self._reconcile(key)
