"""Finds free capacity on nodes of several kinds: best fit by bisection."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from gputally_sim.api.store import Change, Store, Verb
from gputally_sim.node.pods import condition

_UNUSABLE = frozenset({"False", "Unknown"})


@dataclass(frozen=True)
class Kind:
    """A kind of node: its resource name and GPU type."""

    resource: str
    gpu_type: str


class FreeCapacity:
    """Free units of the nodes added by `add`. Deleted, cordoned and unready nodes are skipped."""

    def __init__(self, store: Store) -> None:
        self._kinds: dict[str, Kind] = {}
        self._free: dict[str, int] = {}
        self._open: set[str] = set()
        self._by_room: defaultdict[Kind, list[tuple[int, str]]] = defaultdict(list)
        store.subscribe("nodes", self._observe)

    def add(self, name: str, kind: Kind, units: int) -> None:
        """Add a node with all units free."""
        self._kinds[name] = kind
        self._free[name] = units
        self._set_open(name, is_open=True)

    def find(self, resource: str, units: int, gpu_types: Collection[str]) -> str:
        """The best-fitting node of these types, or of any type if empty; "" if nothing fits."""
        kinds = [kind for kind in self._by_room if kind.resource == resource]
        lists = [self._by_room[kind] for kind in kinds if not gpu_types or kind.gpu_type in gpu_types]
        found = [nodes[i] for nodes in lists if (i := bisect_left(nodes, (units, ""))) < len(nodes)]
        return min(found)[1] if found else ""

    def take(self, name: str, units: int) -> None:
        """Allocate `units` of the node; negative units are released."""
        was_open = name in self._open
        self._set_open(name, is_open=False)
        self._free[name] -= units
        self._set_open(name, is_open=was_open)

    def _observe(self, change: Change) -> None:
        name = change.key[1]
        if name in self._kinds:
            node = change.now.doc
            ready = (condition(node, "Ready") or {}).get("status")
            cordoned = node.get("spec", {}).get("unschedulable")
            self._set_open(name, is_open=change.verb is not Verb.DELETED and not cordoned and ready not in _UNUSABLE)

    def _set_open(self, name: str, *, is_open: bool) -> None:
        if is_open == (name in self._open):
            return
        nodes = self._by_room[self._kinds[name]]
        entry = self._free[name], name
        if is_open:
            self._open.add(name)
            insort(nodes, entry)
        else:
            self._open.discard(name)
            del nodes[bisect_left(nodes, entry)]
