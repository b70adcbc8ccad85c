"""One node: what it offers, and what pods take from it."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from gputally.errors import MalformedObject
from gputally.model.kube.nodes import Node
from gputally.model.needs import Amounts, Place, Taint, Taken
from gputally.model.price import Asset
from gputally.placement.answer_cache import Answers, NodeMemo
from gputally.placement.resource_requests import amount_of

_NONE: Final[frozenset[str]] = frozenset()
"""One object for all nodes: a set takes 200 bytes."""


class NodeRoom:
    """A node with the pods bound to it, by UID. `place` is None while only its pods are known.

    `stopping` are the UIDs of pods with a deletion request, `nominated` the requests of pods for which room is made
    here. Only `Room` changes it.
    """

    __slots__ = ("_available", "free", "memo", "name", "nominated", "place", "stopping", "taken")

    def __init__(self, name: str, answers: Answers) -> None:
        self.name = name
        self.place: Place | None = None
        self.taken: dict[str, Taken] = {}
        self.stopping = _NONE
        self.nominated: dict[str, Taken] = {}
        self.free: dict[str, int] = {}
        """Offered minus taken, by resource; negative if more is taken than offered."""
        self.memo = NodeMemo(name, answers)
        """Answers about this node, valid until it changes."""
        self._available: dict[tuple[int, bool], Mapping[str, int]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known about it."""
        return not (self.place or self.taken or self.nominated)

    @property
    def offered(self) -> Amounts:
        """What the node offers."""
        return self.place.offered if self.place else ()

    @property
    def kind(self) -> tuple[Amounts, Asset | None]:
        """What the node offers, and what its price depends on."""
        return self.offered, self.place.asset if self.place else None

    def replace(self, place: Place | None) -> None:
        """The node changed, or is gone."""
        self.place = place
        self.free = dict(self.offered)
        for taken in self.taken.values():
            add(self.free, taken.amounts, sign=-1)
        self.forget()

    def put(self, uid: str, taken: Taken) -> None:
        """A pod was bound, or its requests changed."""
        if old := self.taken.get(uid):
            add(self.free, old.amounts)
        self.taken[uid] = taken
        add(self.free, taken.amounts, sign=-1)
        self.forget()

    def drop(self, uid: str) -> None:
        """A pod ended or was deleted."""
        self.stopping = self.stopping - {uid} or _NONE
        if taken := self.taken.pop(uid, None):
            add(self.free, taken.amounts)
            self.forget()

    def forget(self) -> None:
        """Drop the answers about this node."""
        self._available.clear()
        self.memo.forget()

    def available(self, priority: int, *, may_preempt: bool) -> Mapping[str, int]:
        """What a pod could have here: the rest, and what pods of lower priority have if it may preempt them.

        Pods of its own or a higher priority that are nominated to the node take what they need.
        """
        key = (priority, may_preempt)
        if (known := self._available.get(key)) is None:
            known = self._available[key] = self.available_to("", priority, may_preempt=may_preempt)
        return known

    def amount(self, resource: str, priority: int, *, may_preempt: bool) -> int:
        """How much of one resource is `available`; nothing else is summed up or kept, since it is read of all nodes."""
        lower = self.taken.values() if may_preempt else ()
        found = self.free.get(resource, 0) + sum([each.of(resource) for each in lower if each.priority < priority])
        return found - sum([each.of(resource) for each in self.nominated.values() if each.priority >= priority])

    def available_to(self, uid: str, priority: int, *, may_preempt: bool) -> Mapping[str, int]:
        """What is `available` to the nominated pod `uid`, whose own nomination takes nothing from it."""
        amounts = self.free
        lower = [each for each in self.taken.values() if each.priority < priority] if may_preempt else ()
        nominated = [each for key, each in self.nominated.items() if each.priority >= priority and key != uid]
        if lower or nominated:
            amounts = dict(amounts)
            for each in lower:
                add(amounts, each.amounts)
            for each in nominated:
                add(amounts, each.amounts, sign=-1)
        return amounts

    def copy(self, answers: Answers | None = None) -> "NodeRoom":
        """An independent copy; `answers` are those of its room."""
        found = NodeRoom(self.name, answers or Answers())
        found.place = self.place
        found.taken, found.stopping = dict(self.taken), self.stopping
        found.nominated, found.free = dict(self.nominated), dict(self.free)
        return found


def add(sums: dict[str, int], amounts: Amounts, *, sign: int = 1) -> None:
    """Add `amounts` to `sums`."""
    for resource, amount in amounts:
        sums[resource] = sums.get(resource, 0) + sign * amount


def place_of(node: Node) -> Place:
    """`node` as the scheduler sees it. Raises: MalformedObject for an invalid quantity."""
    try:
        offered = sorted((name, amount_of(name, each)) for name, each in (node.status.allocatable or {}).items())
    except ValueError as error:
        raise MalformedObject(node.metadata.uid, str(error)) from None
    return Place(
        uid=node.metadata.uid,
        name=node.metadata.name,
        labels=tuple([_label(*label) for label in sorted((node.metadata.labels or {}).items())]),
        taints=tuple([_taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints or ()]),
        offered=_amounts(tuple(offered)),
        is_cordoned=bool(node.spec.unschedulable),
    )


@lru_cache(maxsize=16384)
def _label(key: str, value: str) -> tuple[str, str]:
    """Equal labels of thousands of nodes are one object."""
    return key, value


@lru_cache(maxsize=1024)
def _taint(key: str, value: str, effect: str) -> Taint:
    return Taint(key, value, effect)


@lru_cache(maxsize=4096)
def _amounts(offered: Amounts) -> Amounts:
    return offered
