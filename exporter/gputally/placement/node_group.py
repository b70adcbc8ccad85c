"""Nodes that accept the same pods, as far as labels, taints and cordons decide."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from gputally.model.placement.needs import Amounts, Needs, Place, Taint
from gputally.model.placement.verdict import Obstacle
from gputally.placement.node_room import NodeRoom

NAME: Final = "field:metadata.name"
"""Stands for the name of the node among label keys, which cannot contain a colon."""
Exclusions = tuple[Obstacle, ...]
"""What keeps a pod away from all nodes with the same signature."""
Signature = tuple[tuple[str | None, ...], tuple[Taint, ...], bool]


class Ladder:
    """Nodes by the number of units of one resource that a pod of some priority could have there."""

    def __init__(self) -> None:
        self.steps: dict[int, dict[str, NodeRoom]] = {}

    def put(self, node: NodeRoom, step: int) -> None:
        """The node has that many."""
        self.drop(node.name)
        self.steps.setdefault(step, {})[node.name] = node

    def drop(self, name: str) -> None:
        """The node is no longer here."""
        for step, nodes in self.steps.items():  # of which there are few: an index would double the memory
            if nodes.pop(name, None):
                if not nodes:
                    del self.steps[step]
                return

    def downwards(self, least: int | None = None) -> Iterator[NodeRoom]:
        """The nodes with at least that many, those with the most first."""
        for step in sorted(self.steps, reverse=True):
            if least is not None and step < least:
                return
            yield from self.steps[step].values()

    @property
    def total(self) -> int:
        """The sum over all nodes; what is overcommitted on one is not missing on others."""
        return sum(max(step, 0) * len(nodes) for step, nodes in self.steps.items())


class NodeGroup:
    """Nodes with the same signature; `memo` has answers that depend on that alone."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeRoom] = {}
        self.memo: dict[Needs, Exclusions] = {}
        self.offers: Counter[Amounts] = Counter()
        """The number of nodes by what they offer."""
        self.large: dict[Amounts, int] = {}
        """How many nodes are large enough for such requests, as far as anyone asked."""
        self._offer_of: dict[str, Amounts] = {}
        self._ladders: dict[tuple[str, int, bool], Ladder] = {}

    @property
    def example(self) -> Place:
        """Any of its nodes."""
        place = next(iter(self.nodes.values())).place
        assert place is not None
        return place

    def put(self, node: NodeRoom) -> None:
        """A node was added, or has changed without a change of the signature."""
        self._count(node.name, node.offered)
        self.nodes[node.name] = node
        for (resource, priority, may_preempt), ladder in self._ladders.items():
            ladder.put(node, node.available(priority, may_preempt=may_preempt).get(resource, 0))

    def drop(self, name: str) -> None:
        """The node is gone, or has another signature."""
        del self.nodes[name]
        self._count(name, None)
        for ladder in self._ladders.values():
            ladder.drop(name)

    def ladder(self, resource: str, priority: int, *, may_preempt: bool) -> Ladder:
        """Its nodes by what a pod of that priority could have of `resource`."""
        key = (resource, priority, may_preempt)
        if (found := self._ladders.get(key)) is None:
            if len(self._ladders) >= _MAX_LADDERS:
                self._ladders.clear()
            found = self._ladders[key] = Ladder()
            for node in self.nodes.values():
                found.put(node, node.available(priority, may_preempt=may_preempt).get(resource, 0))
        return found

    def _count(self, name: str, offered: Amounts | None) -> None:
        old = self._offer_of.pop(name, None)
        if old != offered:
            self.large.clear()
        if old is not None:
            self.offers[old] -= 1
            if not self.offers[old]:
                del self.offers[old]
        if offered is not None:
            self._offer_of[name] = offered
            self.offers[offered] += 1


class NodeGrouping:
    """All nodes by the signature of some label keys. `dirty` are the names of nodes that have changed since."""

    def __init__(self, keys: tuple[str, ...], nodes: Iterable[NodeRoom]) -> None:
        self.dirty: set[str] = set()
        self._keys = keys
        self._groups: dict[Signature, NodeGroup] = {}
        self._signatures: dict[str, Signature] = {}
        for node in nodes:
            self._put(node)

    def current(self, nodes: dict[str, NodeRoom]) -> Iterable[NodeGroup]:
        """The groups, after the changes of `nodes`."""
        for name in self.dirty:
            if (node := nodes.get(name)) and node.place:
                self._put(node)
            else:
                self._drop(name)
        self.dirty.clear()
        return self._groups.values()

    def _put(self, node: NodeRoom) -> None:
        assert node.place is not None
        signature = signature_of(node.place, self._keys)
        if self._signatures.get(node.name) != signature:
            self._drop(node.name)
            self._signatures[node.name] = signature
        if (group := self._groups.get(signature)) is None:
            group = self._groups[signature] = NodeGroup()
        group.put(node)

    def _drop(self, name: str) -> None:
        if (signature := self._signatures.pop(name, None)) is not None:
            self._groups[signature].drop(name)
            if not self._groups[signature].nodes:
                del self._groups[signature]


def signature_of(place: Place, keys: tuple[str, ...]) -> Signature:
    """What decides about all pods that select nodes by these label keys."""
    labels = dict(place.labels) | {NAME: place.name} if keys else {}
    return tuple([labels.get(key) for key in keys]), place.taints, place.is_cordoned


_MAX_LADDERS = 256
