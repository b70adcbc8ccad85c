"""What a node shows before its machine is taken away: a reclaim by the cloud, or a scale-down by an autoscaler."""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.state_part import KeyedPart, no_later
from gputally.model.kube.meta import Kind, Object
from gputally.model.kube.nodes import Node
from gputally.model.node_record import NodeRecord
from gputally.model.units import US_PER_HOUR, dated_us

RECLAIM_TAINT: Final = "aws-node-termination-handler/spot-itn"
"""Source: aws/aws-node-termination-handler pkg/node/node.go; its other taints announce no reclaim."""
SCALE_DOWN_TAINT: Final = "ToBeDeletedByClusterAutoscaler"
"""Source: kubernetes/autoscaler cluster-autoscaler/utils/taints."""
RECLAIM_CONDITION: Final = ("PreemptionScheduled", "SpotEvictionIncoming")
"""Type and reason on AKS. Source: Azure/karpenter-provider-azure pkg/controllers/node/interruption."""
_KEEP_US: Final = US_PER_HOUR


class NodeSignal(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Since when (µs) a node has shown each signal, and when it was deleted."""

    node_uid: str
    reclaim_us: int | None = None
    scale_down_us: int | None = None
    gone_us: int | None = None


class NodeSignals(KeyedPart[NodeSignal]):
    """Signals of nodes by UID: most nodes never show any. `changed` is called with the UID for each new one.

    They stay for an hour after the node is deleted, since reports of its pods may arrive late.
    """

    name = "node_signal"
    kinds = (Kind.NODES,)

    def __init__(self, changed: Callable[[str, int], None]) -> None:
        super().__init__()
        self._on_change = changed

    def get(self, node_uid: str) -> NodeSignal | None:
        """The signals of a node, if it has shown any."""
        return self.known.get(node_uid)

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`; a signal that disappears has been shown."""
        if not isinstance(found, Node):
            return
        reclaim_us, scale_down_us = _reclaim_us(found, at_us), _scale_down_us(found, at_us)
        if reclaim_us is None and scale_down_us is None:
            return
        uid = found.metadata.uid
        known = self.known.get(uid) or NodeSignal(node_uid=uid)
        better = replace(
            known,
            reclaim_us=_first(known.reclaim_us, reclaim_us),
            scale_down_us=_first(known.scale_down_us, scale_down_us),
        )
        if better != known:
            self._store(uid, better)
            self._on_change(uid, at_us)

    def reclaimed(self, node: NodeRecord, *, reclaim_us: int, at_us: int) -> None:
        """An Event announced at `reclaim_us` that the machine of a node, which may be deleted, is taken back."""
        known = self.known.get(node.uid) or NodeSignal(node_uid=node.uid, gone_us=node.gone_us)
        if known.reclaim_us is None or reclaim_us < known.reclaim_us:
            self._store(node.uid, replace(known, reclaim_us=reclaim_us))
            self._on_change(node.uid, at_us)

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`."""
        if (known := self.known.get(uid)) and known.gone_us is None:
            self._store(uid, replace(known, gone_us=at_us))

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.known.keys() - uids:
            self.gone(uid, at_us=at_us)

    def advance(self, now_us: int) -> None:
        """See `StatePart.advance`."""
        for uid, each in tuple(self.known.items()):
            if each.gone_us is not None and each.gone_us < now_us - _KEEP_US:
                self._remove(uid)

    def restore(self, documents: Iterable[NodeSignal], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for each in documents:
            self.known[each.node_uid] = no_later(each, at_us, "reclaim_us", "scale_down_us", "gone_us")


def _reclaim_us(node: Node, at_us: int) -> int | None:
    kind, reason = RECLAIM_CONDITION
    for condition in node.status.conditions or ():
        if condition.type == kind and condition.status == "True" and condition.reason == reason:
            time = condition.last_transition_time
            return dated_us(time, at_us)
    return _tainted_us(node, RECLAIM_TAINT, at_us)


def _scale_down_us(node: Node, at_us: int) -> int | None:
    return _tainted_us(node, SCALE_DOWN_TAINT, at_us)


def _tainted_us(node: Node, key: str, at_us: int) -> int | None:
    """Since when the node has the taint; the API server writes a time only for some effects."""
    for taint in node.spec.taints or ():
        if taint.key == key:
            return dated_us(taint.time_added, at_us)
    return None


def _first(known: int | None, new: int | None) -> int | None:
    return new if known is None else known
