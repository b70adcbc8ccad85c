"""Pods for which the scheduler makes room on a node: one of them preempted the pods that were deleted there then."""

from typing import Final

from msgspec import Struct

from gputally.model.disruptions import Preemptor
from gputally.model.units import US_PER_SECOND

MOST: Final = 10_000
"""Limit of stored nominations; beyond it, the oldest is dropped."""
BEFORE_US: Final = 10 * US_PER_SECOND
AFTER_US: Final = 60 * US_PER_SECOND
"""A nomination is written with the decision; its observation may be late, and API times have whole seconds."""


class Nomination(Struct, frozen=True, gc=False):
    """When a pod was first observed as nominated to a node, and its priority."""

    node: str
    at_us: int
    priority: int
    preemptor: Preemptor


class Nominations:
    """Nominations by UID of the pod, the oldest first. Its last node counts."""

    def __init__(self) -> None:
        self._found: dict[str, Nomination] = {}
        self._on_node: dict[str, dict[str, Nomination]] = {}

    def add(self, new: Nomination) -> None:
        """Store a nomination; the first observation of the same one counts."""
        uid = new.preemptor.uid
        if uid in self._found and self._found[uid].node == new.node:
            return
        self._drop(uid)
        self._found[uid] = self._on_node.setdefault(new.node, {})[uid] = new
        if len(self._found) > MOST:
            self._drop(next(iter(self._found)))

    def get(self, uid: str) -> Preemptor | None:
        """The nominated pod with this UID."""
        return self._found[uid].preemptor if uid in self._found else None

    def only_one(self, node: str, *, decided_us: int, above: int) -> Preemptor | None:
        """The pod of a priority above `above` that was nominated to the node at that time; None if there are several.

        A nomination alone is no evidence of a preemption, but one that was decided on that node at that time is for one
        of the pods nominated there.
        """
        found = [
            each.preemptor
            for each in self._on_node.get(node, {}).values()
            if each.priority > above and decided_us - BEFORE_US <= each.at_us <= decided_us + AFTER_US
        ]
        return found[0] if len(found) == 1 else None

    def forget(self, *, before_us: int) -> None:
        """Drop nominations from before that time."""
        for uid in [uid for uid, each in self._found.items() if each.at_us < before_us]:
            self._drop(uid)

    def _drop(self, uid: str) -> None:
        if known := self._found.pop(uid, None):
            del self._on_node[known.node][uid]
            if not self._on_node[known.node]:
                del self._on_node[known.node]
