"""Partial gangs that wait for each other, found step by step."""

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Final

from gputally.accounting.groups.partial_gangs import PartialGangs
from gputally.accounting.pods.pods import Pods
from gputally.accounting.waiting.live_room import LiveRoom
from gputally.accounting.waiting.plea import Plea
from gputally.model.placement.needs import Needs
from gputally.model.placement.partial_gang import PartialGang, PartialNow
from gputally.placement.verdicts.deadlock import WaitingGang, deadlocks, served_by

MOST_GANGS: Final = 16
"""The oldest partial gangs, which are compared with each other."""
_MOST_BOUND: Final = 1024
_MOST_KINDS: Final = 4
_AT_ONCE: Final = 4
"""Gangs in one step: to place the pods of another one takes a millisecond or two in a large cluster."""


class Deadlocks:
    """`found` are the keys of gangs that wait for each other, as of the last steps."""

    def __init__(self, pods: Pods, live: LiveRoom, pleas: Mapping[str, Plea]) -> None:
        self.found: list[tuple[str, ...]] = []
        self.gangs = PartialGangs(pods)
        self._live = live
        self._pleas = pleas
        self._serves: dict[str, frozenset[str]] = {}
        self._turn: list[str] = []

    def step(self) -> None:
        """Compare some gangs with all others."""
        partial = self.gangs.read()
        if not self._live.is_judgeable:
            return
        if len(partial) < 2 and not self._serves:  # noqa: PLR2004 - it takes two
            return
        oldest = sorted(partial.values(), key=lambda each: (each.since_us, each.key))
        waiting = ((each.key, self._waiting(each)) for each in oldest[:MOST_GANGS])
        gangs = {key: each for key, each in waiting if each}
        self._serves = {key: each & gangs.keys() for key, each in self._serves.items() if key in gangs}
        self._turn = [key for key in self._turn if key in gangs] or list(gangs)
        for key in self._turn[:_AT_ONCE]:
            self._serves[key] = served_by(key, gangs, self._live.room)
        del self._turn[:_AT_ONCE]
        self.found = deadlocks(self._serves)

    def read(self) -> PartialNow:
        """All partial gangs, as sums."""
        return PartialNow(self.gangs.sums(), len({key for each in self.found for key in each}))

    def _waiting(self, gang: PartialGang) -> WaitingGang | None:
        """None if it waits for pods that do not exist, or whose requests are not known."""
        if len(gang.pending) < gang.missing:
            return None
        needs = Counter[Needs](
            plea.needs for uid in islice(gang.pending, gang.missing) if (plea := self._pleas.get(uid))
        )
        if sum(needs.values()) < gang.missing or len(needs) > _MOST_KINDS:
            return None
        return WaitingGang(tuple(needs.items()), self.gangs.nodes_of(gang)[:_MOST_BOUND])
