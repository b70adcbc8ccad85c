"""The gangs of which some pods hold GPUs while others are not bound."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from gputally.accounting.frameworks.gang_rules import LEADER_WORKER_SET
from gputally.accounting.frameworks.pod_group import PodGroup, task_of
from gputally.accounting.groups.gang_members import GangMembers, Stage
from gputally.accounting.pods.pods import Pods
from gputally.model.partial_gangs import PartialGang, PartialSum, TaskShort
from gputally.model.pod_record import PodRecord

MOST_PENDING: Final = 1000
"""Pending pods of one gang that are named."""


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
        """By exported tier."""
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
        """Its tasks with fewer bound pods than their minimum."""
        if required := gang.required(self._gangs.known[gang.key].tasks):
            found = Counter(map(task_of, bound))
            yield from (TaskShort(task, found[task], n) for task, n in required.items() if found[task] < n)


def _pending(gang: GangMembers) -> list[str]:
    return [uid for uid in gang.waiting if gang.stages[uid] is Stage.PENDING]


def name_of(group: PodGroup) -> str:
    """The name of a gang as people know it, without the UID or the number of its incarnation."""
    parts = group.name.split("/")
    return "/".join(parts[: 2 if group.kind == LEADER_WORKER_SET else 1])
