"""What the nodes with GPUs offer, and what is taken: the input of every verdict."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from gputally.model.needs import Place, Taken
from gputally.model.price import Asset
from gputally.model.verdicts import Eviction
from gputally.placement.answer_cache import Answers
from gputally.placement.disruption_budgets import NO_BUDGETS
from gputally.placement.node_group import HOSTNAME, NodeGrouping
from gputally.placement.node_room import NodeRoom

PLANNED: Final = "planned "
"""Begins the UID that stands for a pod that a forecast has placed."""
TRIED: Final = "what-if "
"""Begins the UID that stands for a pod while its forecast is made."""
_MAX_GROUPINGS = 16
"""Sets of label keys by which nodes stay grouped: each takes megabytes in a large cluster, and anyone may add one."""


def is_planned(uid: str) -> bool:
    """Whether a pod does not exist yet."""
    return uid.startswith((PLANNED, TRIED))


class Room:
    """All nodes with GPUs, by name. Pods may be known before their nodes.

    `is_complete` says whether the pods without GPUs are known, so that free CPU, memory and pods per node are right;
    `lacks_nodes`, that nodes may be missing until a list is complete.
    `budgets` are those that preemptions prefer to respect; none unless they were given.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, NodeRoom] = {}
        self.is_complete = True
        self.lacks_nodes = False
        self.budgets = NO_BUDGETS
        self.stopping: set[str] = set()
        """Names of nodes on which pods are stopping."""
        self.answers = Answers()
        self.places = 0
        """How often nodes were added, deleted or changed themselves, and not only their pods."""
        self.assets = Counter[Asset]()
        """The number of nodes by what their price depends on."""
        self._keys = Counter[str]()
        """The number of nodes by the keys of their labels."""
        self._hosts: dict[str, tuple[str, ...]] = {}
        """The names of nodes by their label HOSTNAME."""
        self._groupings: dict[tuple[str, ...], NodeGrouping] = {}

    def __iter__(self) -> Iterator[NodeRoom]:
        return (node for node in self.nodes.values() if node.place)

    def put_node(self, place: Place) -> None:
        """A node was added or changed."""
        node = self._at(place.name)
        if node.place != place:
            self._index(node.place, place)
            node.replace(place)
            self._changed(node)

    def drop_node(self, name: str) -> None:
        """A node was deleted; its pods are kept until they are deleted, since a kubelet may register it again."""
        if node := self.nodes.get(name):
            self._index(node.place, None)
            node.replace(None)
            self._changed(node)

    def bind(self, node: str, uid: str, taken: Taken) -> None:
        """A pod was bound to `node`, or what it takes has changed."""
        found = self._at(node)
        if found.taken.get(uid) != taken:
            found.put(uid, taken)
            self._changed(found)

    def release(self, node: str, uid: str) -> None:
        """A pod ended or was deleted."""
        if (found := self.nodes.get(node)) and uid in found.taken:
            found.drop(uid)
            self._changed(found)

    def stop(self, node: str, uid: str) -> None:
        """The deletion of a bound pod was requested."""
        if (found := self.nodes.get(node)) and uid in found.taken and uid not in found.stopping:
            found.stopping |= {uid}
            self._changed(found)

    def evict(self, eviction: Eviction) -> None:
        """The victims of a preemption are gone."""
        for uid in eviction.victims:
            self.budgets.disrupt(uid)
            self.release(eviction.node, uid)

    def nominate(self, node: str, uid: str, taken: Taken) -> None:
        """Room is made on `node` for a waiting pod."""
        found = self._at(node)
        if found.nominated.get(uid) != taken:
            found.nominated[uid] = taken
            self._changed(found)

    def withdraw(self, node: str, uid: str) -> None:
        """A pod is no longer nominated: it was bound, deleted or nominated elsewhere."""
        if (found := self.nodes.get(node)) and found.nominated.pop(uid, None):
            self._changed(found)

    def grouping(self, keys: Iterable[str]) -> NodeGrouping:
        """The nodes by their labels with these keys, taints and cordons, but not by their names; see `keys_of`."""
        having = tuple([key for key in keys if key in self._keys])  # anyone may make up others
        found = self._groupings.pop(having, None) or NodeGrouping(having, self, self.answers)
        self._groupings[having] = found
        if len(self._groupings) > _MAX_GROUPINGS:
            del self._groupings[next(iter(self._groupings))]  # the one that was not used for the longest time
        return found

    def hosts(self, names: Iterable[str]) -> Iterator[NodeRoom]:
        """The nodes that have one of these values as HOSTNAME, or as their name; some perhaps twice."""
        for name in names:
            if (node := self.nodes.get(name)) and node.place:
                yield node
            yield from (self.nodes[each] for each in self._hosts.get(name, ()))

    def serves(self, name: str, uid: str) -> bool:
        """Whether a pod on the node of that name serves users."""
        node = self.nodes.get(name)
        taken = node.taken.get(uid) if node else None
        return taken is not None and taken.is_serving

    def copy(self) -> "Room":
        """An independent copy."""
        found = Room()
        found.is_complete, found.budgets = self.is_complete, self.budgets.copy()
        found.nodes = {name: node.copy(found.answers) for name, node in self.nodes.items()}
        found._keys, found._hosts, found.assets = self._keys.copy(), dict(self._hosts), self.assets.copy()
        found.stopping = set(self.stopping)
        return found

    def only(self, node: NodeRoom) -> "Room":
        """A room with that node alone: what happens on a node depends on it alone."""
        found = Room()
        found.is_complete, found.budgets = self.is_complete, self.budgets
        found.nodes[node.name] = node
        found._index(None, node.place)
        found.stopping = self.stopping & {node.name}
        return found

    def _at(self, name: str) -> NodeRoom:
        if (found := self.nodes.get(name)) is None:
            found = self.nodes[name] = NodeRoom(name, self.answers)
        return found

    def _index(self, old: Place | None, new: Place | None) -> None:
        self.places += 1
        for place, sign in ((old, -1), (new, 1)):
            if place and place.asset:
                self.assets[place.asset] += sign
            for key, value in place.labels if place else ():
                self._keys[key] += sign
                if not self._keys[key]:
                    del self._keys[key]
                if place and key == HOSTNAME:
                    self._host(value, place.name, is_new=sign > 0)

    def _host(self, value: str, name: str, *, is_new: bool) -> None:
        others = tuple([each for each in self._hosts.pop(value, ()) if each != name])
        if names := (*others, name) if is_new else others:
            self._hosts[value] = names

    def _changed(self, node: NodeRoom) -> None:
        node.forget()
        for grouping in self._groupings.values():
            grouping.dirty.add(node.name)
        if node.stopping:
            self.stopping.add(node.name)
        else:
            self.stopping.discard(node.name)
        if node.is_empty:
            del self.nodes[node.name]
