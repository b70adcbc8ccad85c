"""What the nodes with GPUs offer, and what is taken: the input of every verdict."""

from collections.abc import Iterator

from gputally.model.placement.needs import Amounts, Place, Taken


class NodeRoom:
    """A node with the pods bound to it, by UID. `is_complete` once all pods on it are known.

    `stopping` are UIDs of pods with a deletion request, `nominated` the needs of pods for which room is made here.
    """

    __slots__ = ("free", "is_complete", "nominated", "place", "stopping", "taken")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.taken: dict[str, Taken] = {}
        self.stopping: set[str] = set()
        self.nominated: dict[str, Taken] = {}
        self.is_complete = False
        self.free: dict[str, int] = dict(place.offered)
        """Offered minus taken, by resource; negative if more is taken than offered."""

    def put(self, uid: str, taken: Taken) -> None:
        """A pod was bound, or its requests changed."""
        self.drop(uid)
        self.taken[uid] = taken
        self._add(taken.amounts, sign=-1)

    def drop(self, uid: str) -> None:
        """A pod ended or was deleted."""
        self.stopping.discard(uid)
        if taken := self.taken.pop(uid, None):
            self._add(taken.amounts, sign=1)

    def replace(self, place: Place) -> None:
        """The node changed."""
        self.place = place
        self.free = dict(place.offered)
        for taken in self.taken.values():
            self._add(taken.amounts, sign=-1)

    def _add(self, amounts: Amounts, *, sign: int) -> None:
        for resource, amount in amounts:
            self.free[resource] = self.free.get(resource, 0) + sign * amount


class Room:
    """All nodes with GPUs, by name."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeRoom] = {}

    def __iter__(self) -> Iterator[NodeRoom]:
        return iter(self.nodes.values())
