"""Finds partial gangs, of which some pods hold GPUs while others are not bound, that wait for each other."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, zip_longest
from typing import Final

from gputally.accounting.groups.gang_members import GangMembers, Stage
from gputally.accounting.pods.pods import Pods
from gputally.accounting.waiting.live_room import LiveRoom
from gputally.accounting.waiting.scheduling_status import SchedulingStatus
from gputally.frameworks.groups import PodGroup
from gputally.frameworks.lws import LEADER_WORKER_SET
from gputally.frameworks.volcano import task_of
from gputally.model.needs import Needs
from gputally.model.partial_gangs import NotCompared, PartialGang, PartialNow, PartialSum, TaskShort
from gputally.model.pod_record import PodRecord
from gputally.placement.deadlocks import GangDemand, deadlocks, served_by, stuck

MOST_PENDING: Final = 1000
"""Pending pods of one gang that are named."""
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


class PartialGangs:
    """Partial gangs by their key; a gang is looked at again when one of its pods has changed."""

    def __init__(self, pods: Pods) -> None:
        self._gangs = pods.gangs
        self._records = pods.records
        self._known: dict[str, PartialGang] = {}

    def read(self) -> Mapping[str, PartialGang]:
        """The partial gangs now."""
        changed, self._gangs.changed = self._gangs.changed, set()
        for key in changed:
            self._known.pop(key, None)
            if key in self._gangs.partial and (found := self._partial(self._gangs.members[key])):
                self._known[key] = found
        return self._known

    def sums(self) -> dict[str, PartialSum]:
        """Sums of partial gangs by exported tier."""
        found: dict[str, PartialSum] = {}
        for each in self.read().values():
            found[each.tier] = found.get(each.tier, PartialSum(0, 0, each.since_us)).with_gang(each)
        return found

    def nodes_of(self, gang: PartialGang) -> list[tuple[str, str]]:
        """The node and UID of each of its bound pods."""
        return [(self._records[uid].node, uid) for uid in gang.pods if uid in self._records]

    def _partial(self, gang: GangMembers) -> PartialGang | None:
        size = self._gangs.size_of(gang)
        bound = {uid: self._records[uid] for uid, stage in gang.stages.items() if stage in (Stage.BOUND, Stage.RUNNING)}
        holding = {uid: each for uid, each in bound.items() if each.end_us is None and each.segments}
        tasks = tuple(self._short(gang, bound.values())) if size else ()
        missing = max((size or gang.present) - len(bound), sum(each.needed - each.bound for each in tasks))
        if not holding or missing <= 0:
            return None
        last = next(iter(holding.values())).segments[-1]
        return PartialGang(
            key=gang.key,
            kind=gang.group.kind,
            namespace=gang.group.namespace,
            name=name_of(gang.group),
            tier=last.labels[0],
            tenant=last.tenant,
            bound=len(bound),
            needed=len(bound) + missing,
            quantity=sum(part.quantity for each in holding.values() for part in each.segments if part.end_us is None),
            since_us=min(each.scheduled_us or each.created_us for each in holding.values()),
            pods=tuple(holding),
            pending=tuple(_pending(gang)[:MOST_PENDING]),
            tasks=tasks,
        )

    def _short(self, gang: GangMembers, bound: Iterable[PodRecord]) -> Iterator[TaskShort]:
        """The tasks of a gang with fewer bound pods than their minimum."""
        if required := gang.required(self._gangs.known[gang.key].tasks):
            found = Counter(map(task_of, bound))
            yield from (TaskShort(task, found[task], n) for task, n in required.items() if found[task] < n)


def _pending(gang: GangMembers) -> list[str]:
    return [uid for uid in gang.waiting if gang.stages[uid] is Stage.PENDING]


def name_of(group: PodGroup) -> str:
    """The name of a gang as people know it, without the UID or the number of its incarnation."""
    parts = group.name.split("/")
    return "/".join(parts[: 2 if group.kind == LEADER_WORKER_SET else 1])


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

    def _chosen(self, partial: Mapping[str, PartialGang]) -> dict[str, GangDemand]:
        """The gangs to compare: first the oldest of each tenant, then the second oldest; or tenant by tenant."""
        tenants = defaultdict[str, list[PartialGang]](list)
        for each in sorted(partial.values(), key=lambda each: (each.since_us, each.key)):
            tenants[each.tenant].append(each)
        self.skipped = dict.fromkeys(partial, NotCompared.LIMIT)
        namespaces, found = Counter[str](), dict[str, GangDemand]()
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

    def _comparable(self, gangs: list[PartialGang]) -> Iterator[tuple[PartialGang, GangDemand]]:
        """The oldest gangs of a tenant of which it is known what they wait for."""
        yield from islice(self._known(gangs), MOST_OF_TENANT)

    def _known(self, gangs: list[PartialGang]) -> Iterator[tuple[PartialGang, GangDemand]]:
        left = _MOST_READ
        for each in gangs:
            exist = len(each.pending) >= each.missing
            left -= exist
            waiting = self._waiting(each) if exist and left >= 0 else None
            if waiting:
                yield each, waiting
            elif not exist or left >= 0:
                self.skipped[each.key] = NotCompared.UNKNOWN

    def _waiting(self, gang: PartialGang) -> GangDemand | None:
        """None if the requests of its pods are not known, or are of too many kinds."""
        needs = Counter[Needs](
            status.needs for uid in islice(gang.pending, gang.missing) if (status := self._statuses.get(uid))
        )
        if sum(needs.values()) < gang.missing or len(needs) > _MOST_KINDS:
            return None
        return GangDemand(tuple(needs.items()), self.gangs.nodes_of(gang)[:_MOST_BOUND])
