"""Decides what a wait is charged to: its cause, and the pods that hold the GPUs it waits for.

The rule: among the pods that the verdict names on its node, the tier and tenant that hold most GPUs there; of equal
ones, the first by name. Pods without GPUs count for nobody. At any moment, no pod is charged for more GPUs than it
holds.

Of a thousand pods that wait behind one with 4 GPUs, 4 GPUs wait for what it holds; the others would wait without it as
well. The pod that has waited for the longest time comes first, then the first by UID, whoever else is waiting: later
pods change nothing about earlier ones. The rest of the waiting GPUs is charged to nobody, at the same cause.
"""

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from msgspec import Struct, field

from gputally.model.pod_record import PodRecord
from gputally.model.verdicts import Reason, Verdict
from gputally.model.waits import CAUSE_OF, Occupant, WaitCause

_BY_NOBODY = (WaitCause.QUOTA, WaitCause.GANG, WaitCause.GATES, WaitCause.OTHER)
"""Causes that would keep a pod waiting on empty nodes, too."""
_BY_PRIORITY = (Reason.CAPACITY, Reason.INVERSION)
_BY_USE = (Reason.CAPACITY, Reason.INVERSION, Reason.NEVER_PREEMPTS, Reason.PREEMPTING, Reason.FRAGMENTED)
"""Idle pods that occupy the node are the cause of these, rather than the priorities."""
_SPARE: Final = 64
"""Pods that waited once and may stay in the order of a group."""


class Blame(NamedTuple):
    """The cause of a wait, and the occupant, if pods with GPUs hold what is needed: `holders`, by UID, on `node`."""

    cause: WaitCause
    occupant: Occupant | None = None
    node: str = ""
    holders: tuple[str, ...] = ()


def blame(
    verdict: Verdict,
    priority: int,
    records: Mapping[str, PodRecord],
    *,
    is_idle: Callable[[PodRecord], bool],
) -> Blame:
    """What the wait of a pod of that priority is charged to."""
    cause = CAUSE_OF[verdict.reason]
    found = {} if cause in _BY_NOBODY else _occupants(verdict, records)
    if not found:
        return Blame(cause)
    occupant = max(sorted(found), key=lambda each: sum(_quantity(record) for record in found[each]))
    holders = found[occupant]
    by = occupant, holders[0].node, tuple(sorted(each.uid for each in holders))
    if verdict.reason in _BY_USE and all(map(is_idle, holders)):
        return Blame(WaitCause.IDLE_ALLOCATION, *by)
    if verdict.reason in _BY_PRIORITY:
        is_outranked = any((record.priority or 0) > priority for record in holders)
        cause = WaitCause.CAPACITY if is_outranked else WaitCause.NOT_PREEMPTIBLE
    return Blame(cause, *by)


def _occupants(verdict: Verdict, records: Mapping[str, PodRecord]) -> dict[Occupant, list[PodRecord]]:
    found: dict[Occupant, list[PodRecord]] = {}
    node = ""
    for uid in _named(verdict):
        record = records.get(uid)
        if record and record.terms and record.node == (node := node or record.node):
            terms = record.terms[-1]
            found.setdefault(Occupant(terms.tier, terms.tenant), []).append(record)
    return found


def _named(verdict: Verdict) -> Iterable[str]:
    """The pods that the verdict names, each once."""
    return dict.fromkeys((*(uid for each in verdict.obstacles for uid in each.pods), *verdict.victims))


def _quantity(record: PodRecord) -> int:
    return sum(quantity for _, quantity in record.terms[-1].quantities)


class _Member(NamedTuple):
    """A pod that waits; in the order in which what the holders hold is charged."""

    created_us: int
    uid: str
    quantity: int


class _Behind(Struct, eq=False):
    """Pods that wait for what the same pods hold."""

    occupant: Occupant
    holders: tuple[str, ...]
    members: dict[str, _Member] = field(default_factory=dict)
    order: list[_Member] | None = None
    """The members by age, and some that have left; None if it is to be sorted."""

    def put(self, member: _Member) -> None:
        self.members[member.uid] = member
        if self.order is not None and (not self.order or self.order[-1] < member):
            self.order.append(member)
        else:
            self.order = None

    def by_age(self) -> list[_Member]:
        if self.order is None or len(self.order) > 2 * len(self.members) + _SPARE:
            self.order = sorted(self.members.values())
        return self.order


class _Blamed(Struct, eq=False):
    """The groups behind the pods of one node, and the µGPU that are charged to these, by waiting pod."""

    groups: dict[tuple[Occupant, tuple[str, ...]], _Behind] = field(default_factory=dict)
    charged: dict[str, int] = field(default_factory=dict)


class BlameShares:
    """What part of each wait is charged to its occupant; `held` says how many µGPU the pod with a UID holds now."""

    def __init__(self, held: Callable[[str], int]) -> None:
        self._held = held
        self._nodes: dict[str, _Blamed] = {}
        self._of: dict[str, tuple[Blame, _Behind]] = {}
        """Why each waiting pod waits, by its UID, and its group."""
        self._outdated: set[str] = set()
        """Names of nodes."""
        self._changed: set[str] = set()

    def put(self, uid: str, blame: Blame, *, created_us: int, quantity: int) -> None:
        """A pod waits because of these pods, or of nobody. An impossible request has a quantity of 0 and no share."""
        member, known = _Member(created_us, uid, quantity), self._of.get(uid)
        if known and known[1].members[uid] == member and (known[0] is blame or known[0][1:] == blame[1:]):
            return
        self.drop(uid)
        if blame.occupant is None or not quantity:
            return
        node = self._nodes.setdefault(blame.node, _Blamed())
        key = blame.occupant, blame.holders
        if (group := node.groups.get(key)) is None:
            group = node.groups[key] = _Behind(*key)
        group.put(member)
        self._of[uid] = blame, group
        self._outdated.add(blame.node)

    def restore(self, uid: str, blame: Blame, *, created_us: int, quantity: int, charged: int) -> None:
        """A pod whose wait is charged so, since an earlier process did it."""
        self._changed.add(uid)
        self.put(uid, blame, created_us=created_us, quantity=quantity)
        if uid in self._of:
            self._nodes[blame.node].charged[uid] = charged

    def drop(self, uid: str) -> None:
        """A pod waits no longer, or because of nobody."""
        if (known := self._of.pop(uid, None)) is None:
            return
        name, group = known[0].node, known[1]
        node = self._nodes[name]
        del group.members[uid]
        if node.charged.pop(uid, None):
            self._changed.add(uid)
            self._outdated.add(name)
        if not group.members:
            del node.groups[group.occupant, group.holders]
            if not node.groups:
                del self._nodes[name]

    def node_changed(self, name: str) -> None:
        """Pods of that node hold more or less than before."""
        if name in self._nodes:
            self._outdated.add(name)

    def occupant_share(self, uid: str) -> tuple[Occupant | None, int, tuple[str, ...]]:
        """Who is charged for the wait of a pod, for how many µGPU, and for which pods; as of the last `recompute`."""
        if known := self._of.get(uid):
            blame, group = known
            if charged := self._nodes[blame.node].charged.get(uid):
                return group.occupant, charged, group.holders
        return None, 0, ()

    def is_held(self, uid: str) -> bool:
        """Whether the pods for which the wait of a pod is charged still hold anything."""
        known = self._of.get(uid)
        return known is not None and any(self._held(each) for each in known[1].holders)

    def recompute(self) -> set[str]:
        """Recompute the shares on changed nodes; returns the pods whose share differs from the last call."""
        for name in self._outdated:
            if node := self._nodes.get(name):
                before, node.charged = node.charged, self._shared(node.groups.values())
                self._changed.update(uid for uid, _ in before.items() ^ node.charged.items())
        self._outdated.clear()
        changed, self._changed = self._changed, set()
        return changed

    def _shared(self, groups: Iterable[_Behind]) -> dict[str, int]:
        """What is charged by waiting pod; nobody is looked at after the pods that they wait for are used up."""
        free = {uid: self._held(uid) for group in groups for uid in group.holders}
        found: dict[str, int] = {}
        queue = [(group.by_age()[0], number, 0, group) for number, group in enumerate(groups)]
        heapify(queue)
        while queue:
            member, number, place, group = heappop(queue)
            if group.members.get(member.uid) == member:
                if not (charged := _take(free, group.holders, member.quantity)):
                    continue  # and so for all that come later
                found[member.uid] = charged
            if place + 1 < len(order := group.by_age()):
                heappush(queue, (order[place + 1], number, place + 1, group))
        return found


def _take(free: dict[str, int], holders: Iterable[str], quantity: int) -> int:
    """How much of the quantity is charged to these pods, which leaves less of them."""
    rest = quantity
    for uid in holders:
        taken = min(rest, free[uid])
        free[uid] -= taken
        rest -= taken
    return quantity - rest
