"""Nodes with GPUs, from the watch of nodes."""

from collections.abc import Collection

from gputally.accounting.state_part import StatePart
from gputally.accounting.waiting.live_room import LiveRoom
from gputally.accounting.waiting.wait_terms import WaitTerms
from gputally.model.kube import Kind, Node, Object
from gputally.model.placement.wait import PodWait


class RoomNodes(StatePart[PodWait]):
    """Passes nodes on to the room; it has no state of its own."""

    name = "room-node"
    kinds = (Kind.NODES,)

    def __init__(self, live: LiveRoom, terms: WaitTerms, *, is_on: bool) -> None:
        self._live = live
        self._terms = terms
        self._is_on = is_on

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`. Raises: MalformedObject for an invalid quantity."""
        if self._is_on and isinstance(found, Node):
            self._terms.nodes_changed()
            self._live.node_seen(found, at_us=at_us)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._live.node_gone(uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.listed`."""
        self._live.nodes_listed(uids)
