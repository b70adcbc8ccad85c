"""Keeps the room on the nodes up to date: from nodes, from pods with GPUs, and from all other pods on nodes with GPUs.

A node may offer its GPUs some minutes after it has registered, when pods without GPUs run on it already: the pods of
young nodes are kept, too. Where a node gets GPUs later, and after a restart, a list has to tell what runs there.
"""

from collections.abc import Collection
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.compact import shared
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.nodes.nodes import Nodes
from gputally.accounting.waiting.bound_pods import taken_from
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.nodes import Node
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import ENDED_PHASES
from gputally.model.needs import Place, Taken
from gputally.model.pod_record import PodRecord
from gputally.model.quantities import PODS
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND, to_us
from gputally.placement.node_room import place_of
from gputally.placement.room import Room
from gputally.shares.schemes import rule_of

YOUNG_US: Final = 900 * US_PER_SECOND
"""How long a node without GPUs may still turn out to have some."""
MOST_NODES: Final = 5000
"""The most nodes whose pods are kept; the pods of further ones are listed."""
MOST_UNKNOWN: Final = 500
"""The most names of nodes that only pods mention: anyone who may create pods can make them up."""


class LiveRoom:
    """The room, and the names of the nodes that have `changed` since somebody looked.

    `lacks_pods` says that pods may be missing until a list is complete, as `lacks_nodes` of the room does; `late` are
    the nodes of which pods may be missing besides. If it `is_resumed`, the watches list nothing. `nodes` are those with
    GPUs and without.
    """

    def __init__(self, room: Room, rules: Rules, nodes: Nodes, *, is_resumed: bool) -> None:
        self.room = room
        self.changed: set[str] = set()
        self.places_changed = False
        """Whether any of these was added, deleted or changed itself, and not only its pods."""
        self.room.lacks_nodes = self.lacks_pods = True
        self.late: set[str] = set()
        self._listing: set[str] = set()
        """The late nodes in the list beside the watches."""
        self._is_resumed = is_resumed
        self._now_us = 0
        self._rules = rules
        self._nodes = nodes
        self._names: dict[str, str] = {}
        """The names of nodes with GPUs, by UID."""
        self._young = YoungNodes()
        self._touched: set[str] | None = None
        """UIDs that watches reported since a list beside them began."""

    @property
    def needs_list(self) -> bool:
        """Whether a list beside the watches is needed."""
        return bool(self.late) or (self._is_resumed and (self.room.lacks_nodes or self.lacks_pods))

    @property
    def is_complete(self) -> bool:
        """Whether all pods on nodes with GPUs are known."""
        return not (self.lacks_pods or self.late)

    @property
    def is_judgeable(self) -> bool:
        """Whether all nodes with GPUs and all pods with GPUs are known."""
        return not self.room.lacks_nodes and (self._is_resumed or not self.lacks_pods)

    def node_seen(self, node: Node, *, at_us: int) -> None:
        """A node was added or has changed. Raises: MalformedObject for an invalid quantity."""
        name, uid = node.metadata.name, node.metadata.uid
        self._touch(uid)
        known = self.room.nodes.get(name)
        place = known.place if known else None
        if place is None:
            now_us = max(at_us, self._now_us)
            until_us = min(_created_us(node, at_us), at_us) + YOUNG_US
            if not self._offers_gpus(node):
                self._young.node_seen(name, until_us=until_us, at_us=now_us)
                return
            if not self._young.has_all(name, until_us=until_us, at_us=now_us):
                self.late.add(name)
        if place != (new := replace(place_of(node), asset=self._nodes.asset_at(name))):
            self._put(new)
        self._names[uid] = name
        self._young.forget(name)

    def node_reclassified(self, name: str) -> None:
        """What is known of a node has changed without it, such as by a label that has expired."""
        known = self.room.nodes.get(name)
        if known and known.place and known.place.asset != (asset := self._nodes.asset_at(name)):
            self._put(replace(known.place, asset=asset))

    def _put(self, place: Place) -> None:
        self.room.put_node(place)
        self.changed.add(place.name)
        self.places_changed = True

    def node_gone(self, uid: str) -> None:
        """A node was deleted. Its pods stay known, since its kubelet may register it again."""
        self._touch(uid)
        name = self._names.pop(uid, "")
        node = self.room.nodes.get(name)
        if node and node.place and node.place.uid == uid:
            self.room.drop_node(name)
            self.late.discard(name)
            self.changed.add(name)
            self.places_changed = True

    def pod_seen(self, pod: PlaceablePod) -> bool:
        """A pod was added or has changed; returns whether that may matter to a wait, which most events do not."""
        uid, node = pod.metadata.uid, pod.spec.node_name
        self._touch(uid)
        if not node:
            return True
        if pod.status.phase in ENDED_PHASES:
            self.release(node, uid)
            return True
        known = self.room.nodes.get(node)
        taken = known.taken.get(uid) if known else None
        is_new = taken is None or (taken.started_us is None and pod.status.start_time is not None)
        self._bind(node, uid, taken_from(pod, self._rules))
        if pod.metadata.deletion_timestamp:
            self.stop(node, uid)
        return is_new

    def bind(self, node: str, uid: str, taken: Taken) -> bool:
        """A pod takes this from `node`; returns whether that node matters."""
        self._touch(uid)
        return self._bind(node, uid, taken)

    def _bind(self, node: str, uid: str, taken: Taken) -> bool:
        known = self.room.nodes.get(node)
        if known is None and not self.matters(node):
            return False
        if known is None or known.taken.get(uid) != taken:
            self.room.bind(node, uid, taken)
            self.changed.add(node)
        return True

    def matters(self, node: str) -> bool:
        """Whether the pods of a node are kept: if it has GPUs or is young, or if nobody has reported it yet."""
        if node in self.room.nodes or node in self._young:
            return True
        return not self._nodes.has(node) and self._young.pod_seen(node, at_us=self._now_us)

    def stop(self, node: str, uid: str) -> None:
        """The deletion of a bound pod was requested."""
        known = self.room.nodes.get(node)
        if known and uid in known.taken and uid not in known.stopping:
            self.room.stop(node, uid)
            self.changed.add(node)

    def release(self, node: str, uid: str) -> None:
        """A pod ended or was deleted."""
        self._touch(uid)
        known = self.room.nodes.get(node)
        if known and uid in known.taken:
            self.room.release(node, uid)
            self.changed.add(node)

    def deleted(self, uid: str) -> None:
        """A pod was deleted, and it is not known from where."""
        for node in tuple(self.room.nodes):
            self.release(node, uid)

    def restored(self, record: PodRecord) -> None:
        """A bound pod of an earlier process, of which only its GPUs are known."""
        taken = Taken(tuple(sorted((*record.units, (PODS, 1)))), record.priority or 0)
        self.room.bind(record.node, record.uid, shared(taken))

    def pods_listing(self) -> None:
        """The watch begins to list all pods, also those that late nodes lack."""
        self.late.clear()

    def separate_list_begins(self, nodes: Collection[str]) -> None:
        """A list beside the watches begins, of the pods on these nodes, or of all nodes and pods."""
        self._touched = set()
        self._listing = set(nodes) or set(self.late)

    def is_newer(self, uid: str) -> bool:
        """Whether a watch has reported the object since the list beside it began."""
        return self._touched is not None and uid in self._touched

    def separate_list_ends(self, *, had_all: bool) -> None:
        """The list beside the watches is complete."""
        self._touched = None
        self.late -= self._listing
        if had_all:
            self.room.lacks_nodes = self.lacks_pods = False

    def pods_listed(self, uids: Collection[str]) -> None:
        """The watch has listed exactly these pods, of those that matter."""
        for name, node in tuple(self.room.nodes.items()):
            for uid in node.taken.keys() - uids:
                self.release(name, uid)
        self.lacks_pods = False

    def nodes_listed(self, uids: Collection[str]) -> None:
        """The watch has listed exactly these nodes."""
        for uid in self._names.keys() - uids:
            self.node_gone(uid)
        self.room.lacks_nodes = False

    def advance(self, now_us: int) -> None:
        """Forget the pods of nodes that have turned out to have no GPUs."""
        self._now_us = now_us
        for name in self._young.end(now_us):
            node = self.room.nodes.get(name)
            if node and not node.place:
                if node.taken and not self._nodes.has(name):
                    self._young.refuse(now_us)
                for uid in tuple(node.taken):
                    self.room.release(name, uid)

    def _touch(self, uid: str) -> None:
        if self._touched is not None:
            self._touched.add(uid)

    def _offers_gpus(self, node: Node) -> bool:
        names = {**(node.status.capacity or {}), **(node.status.allocatable or {})}
        return any(rule_of(name, self._rules) for name in names)


class RoomNodes(StatePart[Struct]):
    """Passes nodes on to the room; it has no state of its own."""

    name = "room-node"
    kinds = (Kind.NODES,)

    def __init__(self, live: LiveRoom, *, is_on: bool) -> None:
        self._live = live
        self._is_on = is_on

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`. Raises: MalformedObject for an invalid quantity."""
        if self._is_on and isinstance(found, Node):
            self._live.node_seen(found, at_us=at_us)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._live.node_gone(uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.listed`."""
        self._live.nodes_listed(uids)


def _created_us(node: Node, at_us: int) -> int:
    created = node.metadata.creation_timestamp
    return to_us(created) if created else at_us


class YoungNodes:
    """The names of nodes without GPUs, and of nodes that nobody has reported yet.

    It knows of which of them earlier pods may be missing, since there were too many.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, int] = {}
        """When they are young no longer."""
        self._unknown: dict[str, int] = {}
        """Until when a node of that name is expected."""
        self._partial: set[str] = set()
        """Names that may have been refused before they were kept, so that earlier pods may be missing."""
        self._refused_us: int | None = None
        """When a name was refused, or its pods forgotten, for the last time."""

    def __contains__(self, name: str) -> bool:
        return name in self._nodes or name in self._unknown

    def node_seen(self, name: str, *, until_us: int, at_us: int) -> None:
        """A node without GPUs exists, which is young until then."""
        if until_us > at_us and name not in self:
            self._keep(self._nodes, MOST_NODES, name, until_us=until_us, at_us=at_us)

    def pod_seen(self, name: str, *, at_us: int) -> bool:
        """A pod is bound to a node that nobody has reported; returns whether its pods are kept."""
        return name in self or self._keep(self._unknown, MOST_UNKNOWN, name, until_us=at_us + YOUNG_US, at_us=at_us)

    def has_all(self, name: str, *, until_us: int, at_us: int) -> bool:
        """Whether all pods of a node that has GPUs now were kept; `until_us` is when it is young no longer."""
        if name in self:
            return name not in self._partial
        return until_us > at_us and not self._has_refused(at_us)

    def forget(self, name: str) -> None:
        """The node has GPUs."""
        self._nodes.pop(name, None)
        self._unknown.pop(name, None)
        self._partial.discard(name)

    def end(self, now_us: int) -> list[str]:
        """Forget and return those that are young no longer."""
        ended = [
            name for names in (self._nodes, self._unknown) for name, until_us in names.items() if until_us <= now_us
        ]
        for name in ended:
            self.forget(name)
        return ended

    def refuse(self, at_us: int) -> None:
        """Pods of a node that may yet be reported are not kept."""
        self._refused_us = at_us

    def _keep(self, names: dict[str, int], most: int, name: str, *, until_us: int, at_us: int) -> bool:
        if len(names) >= most:
            self.refuse(at_us)
            return False
        if self._has_refused(at_us):
            self._partial.add(name)
        names[name] = until_us
        return True

    def _has_refused(self, at_us: int) -> bool:
        """Whether that may have been a node that is young still."""
        return self._refused_us is not None and at_us < self._refused_us + YOUNG_US
