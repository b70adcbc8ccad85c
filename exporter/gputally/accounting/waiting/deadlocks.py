"""Partial gangs that wait for each other, found step by step."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice, zip_longest
from typing import Final

from gputally.accounting.pods.pods import Pods
from gputally.accounting.waiting.live_room import LiveRoom
from gputally.accounting.waiting.partial_gangs import PartialGangs
from gputally.accounting.waiting.plea import SchedulingStatus
from gputally.model.needs import Needs
from gputally.model.partial_gangs import NotCompared, PartialGang, PartialNow
from gputally.placement.gangs import WaitingGang, deadlocks, served_by, stuck

MOST_OF_TENANT: Final = 16
"""The oldest gangs of one tenant that are compared, and of one namespace, as pods may name their tenants."""
MOST_GANGS: Final = 64
"""Gangs of all tenants that are compared with each other."""
_MOST_READ: Final = 32
"""Gangs of one tenant whose pods are looked at for that."""
_MOST_BOUND: Final = 1024
_MOST_KINDS: Final = 4
_MOST_PLACEMENTS: Final = 128
"""In one step: to place the pods of one gang takes a millisecond or two in a large cluster."""


class Deadlocks:
    """`found` are the keys of gangs that wait for each other, as of the last steps.

    `skipped` are the partial gangs that were not compared in the last step, and why: anyone may create gangs, so each
    tenant has places of its own. Beyond `MOST_GANGS`, once all chosen gangs were compared, others are chosen: in turn
    the oldest of as many tenants as possible, and all of some tenants, which are others each time. What was found
    of up to `MOST_GANGS` others counts until they are compared again.
    """

    def __init__(self, pods: Pods, live: LiveRoom, statuses: Mapping[str, SchedulingStatus]) -> None:
        self.found: list[tuple[str, ...]] = []
        self.skipped: dict[str, NotCompared] = {}
        self.gangs = PartialGangs(pods)
        self._live = live
        self._statuses = statuses
        self._not_compared: Mapping[NotCompared, int] = {}
        self._serves: dict[str, frozenset[str]] = {}
        self._turn: list[str] = []
        self._first = 0
        """The number of the tenant whose gangs are chosen first."""
        self._is_deep = False

    def step(self) -> None:
        """Compare some gangs with all others."""
        partial = self.gangs.read()
        if not self._live.is_judgeable:
            return
        gangs = self._chosen(partial)
        self._not_compared = Counter(self.skipped.values())
        waiting = stuck(gangs, self._live.room) if len(gangs) > 1 else {}
        known = (key for each in self.found for key in each)
        others = {*islice((key for key in known if key in partial and key not in gangs), MOST_GANGS)}
        kept = waiting.keys() | others
        self._serves = {key: each & kept for key, each in self._serves.items() if key in kept}
        self._turn = [key for key in self._turn if key in waiting] or list(waiting)
        count = max(1, (_MOST_PLACEMENTS - len(gangs)) // (len(waiting) or 1))
        for key in self._turn[:count]:
            before = self._serves.get(key, frozenset[str]())
            self._serves[key] = served_by(key, waiting, self._live.room) | (before & others)
        del self._turn[:count]
        self.found = deadlocks(self._serves)
        if not self._turn:
            self._first += len({partial[key].tenant for key in gangs}) if self._is_deep else 0
            self._is_deep = not self._is_deep

    def read(self) -> PartialNow:
        """All partial gangs, as sums."""
        deadlocked = len({key for each in self.found for key in each})
        return PartialNow(self.gangs.sums(), deadlocked, self._not_compared)

    def _chosen(self, partial: Mapping[str, PartialGang]) -> dict[str, WaitingGang]:
        """The gangs to compare: first the oldest of each tenant, then the second oldest; or tenant by tenant."""
        tenants = defaultdict[str, list[PartialGang]](list)
        for each in sorted(partial.values(), key=lambda each: (each.since_us, each.key)):
            tenants[each.tenant].append(each)
        self.skipped = dict.fromkeys(partial, NotCompared.LIMIT)
        namespaces, found = Counter[str](), dict[str, WaitingGang]()
        first = self._first % max(1, len(tenants))
        order = [*islice(tenants.values(), first, None), *islice(tenants.values(), first)]
        of_each = map(self._comparable, order)
        turns = of_each if self._is_deep else zip_longest(*of_each)
        for gang, waiting in (each for turn in turns for each in turn if each):
            if namespaces[gang.namespace] < MOST_OF_TENANT:
                namespaces[gang.namespace] += 1
                found[gang.key] = waiting
                del self.skipped[gang.key]
            if len(found) == MOST_GANGS:
                break
        return found

    def _comparable(self, gangs: list[PartialGang]) -> Iterator[tuple[PartialGang, WaitingGang]]:
        """The oldest gangs of a tenant of which it is known what they wait for."""
        yield from islice(self._known(gangs), MOST_OF_TENANT)

    def _known(self, gangs: list[PartialGang]) -> Iterator[tuple[PartialGang, WaitingGang]]:
        left = _MOST_READ
        for each in gangs:
            exist = len(each.pending) >= each.missing
            left -= exist
            waiting = self._waiting(each) if exist and left >= 0 else None
            if waiting:
                yield each, waiting
            elif not exist or left >= 0:
                self.skipped[each.key] = NotCompared.UNKNOWN

    def _waiting(self, gang: PartialGang) -> WaitingGang | None:
        """None if the requests of its pods are not known, or are of too many kinds."""
        needs = Counter[Needs](
            status.needs for uid in islice(gang.pending, gang.missing) if (status := self._statuses.get(uid))
        )
        if sum(needs.values()) < gang.missing or len(needs) > _MOST_KINDS:
            return None
        return WaitingGang(tuple(needs.items()), self.gangs.nodes_of(gang)[:_MOST_BOUND])
