"""Nodes that accept the same pods, as far as labels, taints and cordons decide."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, Protocol

from gputally.model.needs import Amounts, Needs, Place, Taint
from gputally.model.price import Asset
from gputally.placement.answer_cache import Answers
from gputally.placement.fit import fits
from gputally.placement.node_room import NodeRoom

HOSTNAME: Final = "kubernetes.io/hostname"
"""The label that names the node; nodes are not grouped by it, since each would be a group of its own."""
Signature = tuple[tuple[str | None, ...], tuple[Taint, ...], bool]
Kind = tuple[Amounts, Asset | None]
"""What a node offers, and what its price depends on."""
NO_SIGNATURE: Final[Signature] = (), (), False
_MAX_LADDERS = 256


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


class Steps(Protocol):
    """What is read of a `Ladder`."""

    def downwards(self, least: int | None = None) -> Iterator[NodeRoom]:
        """See `Ladder`."""

    @property
    def total(self) -> int:
        """See `Ladder`."""


class NodeGroup(Protocol):
    """Nodes that accept the same pods. `kinds` counts them by their allocatable amounts and their asset."""

    answers: Answers

    @property
    def nodes(self) -> Mapping[str, NodeRoom]:
        """The nodes by name."""

    @property
    def kinds(self) -> Mapping[Kind, int]:
        """The number of nodes by their allocatable amounts and their asset."""

    def large(self, needs: Needs) -> int:
        """How many nodes are large enough for the pod."""

    def ladder(self, resource: str, priority: int, *, may_preempt: bool) -> Steps:
        """The nodes by what a pod of that priority could have of `resource`."""


class WholeGroup:
    """All nodes with the same `signature`; or a few nodes, without a `number`, of which nothing is remembered."""

    def __init__(self, answers: Answers, number: int = 0, signature: Signature = NO_SIGNATURE) -> None:
        self.nodes: dict[str, NodeRoom] = {}
        self.answers = answers
        self.number = number
        self.signature = signature
        self.kinds: Counter[Kind] = Counter()
        self._version = 0
        """Changes with `kinds`."""
        self._kind_of: dict[str, Kind] = {}
        self._ladders: dict[tuple[str, int, bool], Ladder] = {}

    def put(self, node: NodeRoom) -> None:
        """A node was added, or has changed without a change of the signature."""
        self._count(node.name, node.kind)
        self.nodes[node.name] = node
        for (resource, priority, may_preempt), ladder in self._ladders.items():
            ladder.put(node, node.amount(resource, priority, may_preempt=may_preempt))

    def drop(self, name: str) -> None:
        """The node is gone, or has another signature."""
        del self.nodes[name]
        self._count(name, None)
        for ladder in self._ladders.values():
            ladder.drop(name)

    def large(self, needs: Needs) -> int:
        """See `NodeGroup`."""
        if not self.number:
            return self._large(needs.amounts)
        known = self.answers.of(needs)
        found = known.large.of.get(self.number)
        if found is None or found[0] != self._version:
            found = known.large.of[self.number] = self._version, self._large(needs.amounts)
            self.answers.added(known)
        return found[1]

    def ladder(self, resource: str, priority: int, *, may_preempt: bool) -> Ladder:
        """The nodes of the group by what a pod of that priority could have of `resource`."""
        key = (resource, priority, may_preempt)
        if (found := self._ladders.get(key)) is None:
            if len(self._ladders) >= _MAX_LADDERS:
                self._ladders.clear()
            found = self._ladders[key] = Ladder()
            self.answers.looked_at += len(self.nodes)
            for node in self.nodes.values():
                found.put(node, node.amount(resource, priority, may_preempt=may_preempt))
        return found

    def _large(self, amounts: Amounts) -> int:
        self.answers.looked_at += len(self.kinds)
        return sum(count for (offered, _), count in self.kinds.items() if fits(amounts, dict(offered)))

    def _count(self, name: str, kind: Kind | None) -> None:
        old = self._kind_of.get(name)
        if old == kind:
            return
        self._version += 1
        if old is not None:
            del self._kind_of[name]
            self.kinds[old] -= 1
            if not self.kinds[old]:
                del self.kinds[old]
        if kind is not None:
            self._kind_of[name] = kind
            self.kinds[kind] += 1


class GroupPart:
    """A group without a few nodes, which a pod names. Nothing is copied: there may be thousands of others."""

    def __init__(self, whole: WholeGroup, without: Mapping[str, NodeRoom]) -> None:
        self.answers = whole.answers
        self.nodes: Mapping[str, NodeRoom] = _Rest(whole.nodes, without)
        self._whole = whole
        self._without = without

    @property
    def kinds(self) -> Mapping[Kind, int]:
        """See `NodeGroup`."""
        return self._whole.kinds - Counter(node.kind for node in self._without.values())

    def large(self, needs: Needs) -> int:
        """See `NodeGroup`."""
        fewer = sum(fits(needs.amounts, dict(node.offered)) for node in self._without.values())
        return self._whole.large(needs) - fewer

    def ladder(self, resource: str, priority: int, *, may_preempt: bool) -> Steps:
        """See `NodeGroup`."""
        whole = self._whole.ladder(resource, priority, may_preempt=may_preempt)
        steps = [node.amount(resource, priority, may_preempt=may_preempt) for node in self._without.values()]
        return _LadderPart(whole, self._without, whole.total - sum(max(step, 0) for step in steps))


class _LadderPart:
    def __init__(self, whole: Steps, without: Mapping[str, NodeRoom], total: int) -> None:
        self.total = total
        self._whole = whole
        self._without = without

    def downwards(self, least: int | None = None) -> Iterator[NodeRoom]:
        return (node for node in self._whole.downwards(least) if node.name not in self._without)


class _Rest(Mapping[str, NodeRoom]):
    """A mapping without some of its keys, all of which it has."""

    def __init__(self, whole: Mapping[str, NodeRoom], without: Mapping[str, NodeRoom]) -> None:
        self._whole = whole
        self._without = without

    def __getitem__(self, name: str) -> NodeRoom:
        if name in self._without:
            raise KeyError(name)
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._whole if name not in self._without)

    def __len__(self) -> int:
        return len(self._whole) - len(self._without)


class NodeGrouping:
    """All nodes by the signature of some label keys. `dirty` are the names of nodes that have changed since."""

    def __init__(self, keys: tuple[str, ...], nodes: Iterable[NodeRoom], answers: Answers) -> None:
        self.dirty: set[str] = set()
        self._keys = keys
        self._answers = answers
        self._groups: dict[Signature, WholeGroup] = {}
        self._group_of: dict[str, WholeGroup] = {}
        for node in nodes:
            self._put(node)

    def current(self, nodes: dict[str, NodeRoom]) -> Collection[WholeGroup]:
        """The groups, after the changes of `nodes`."""
        for name in self.dirty:
            if (node := nodes.get(name)) and node.place:
                self._put(node)
            else:
                self._drop(name)
        self.dirty.clear()
        return self._groups.values()

    def group_of(self, name: str) -> WholeGroup:
        """The group of a node, as of the last `current`. Raises: KeyError for an unknown node."""
        return self._group_of[name]

    def _put(self, node: NodeRoom) -> None:
        assert node.place is not None
        self._answers.looked_at += 1
        signature = signature_of(node.place, self._keys)
        group = self._groups.get(signature)
        if (old := self._group_of.get(node.name)) and old is not group:
            self._drop(node.name)
        if group is None:
            group = WholeGroup(self._answers, self._answers.next_number(), signature)
            self._groups[signature] = group
        self._group_of[node.name] = group
        group.put(node)

    def _drop(self, name: str) -> None:
        if group := self._group_of.pop(name, None):
            group.drop(name)
            if not group.nodes:
                del self._groups[group.signature]


def signature_of(place: Place, keys: tuple[str, ...]) -> Signature:
    """What decides about all pods that select nodes by these label keys, besides the name of the node."""
    labels = dict(place.labels) if keys else {}
    if HOSTNAME in labels:
        labels[HOSTNAME] = ""
    return tuple([labels.get(key) for key in keys]), place.taints, place.is_cordoned
