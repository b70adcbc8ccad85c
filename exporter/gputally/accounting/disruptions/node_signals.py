"""Reads signals that a machine is taken away: a reclaim by the cloud, or a scale-down by an autoscaler.

The node shows some itself. Events announce others: whoever may create Events in the namespace of node Events can forge
them; elsewhere they are not read. No other object of the API proves them, so the existing or recently deleted node that
an Event names is believed to be reclaimed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.state_part import KeyedPart, StatePart, no_later
from gputally.accounting.nodes.facts import is_stand_in
from gputally.accounting.nodes.nodes import Nodes
from gputally.model.kube.events import Event
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.nodes import Node
from gputally.model.node_record import NodeRecord
from gputally.model.units import US_PER_HOUR, dated_us, to_us

RECLAIM_TAINT: Final = "aws-node-termination-handler/spot-itn"
"""Source: aws/aws-node-termination-handler pkg/node/node.go; its other taints announce no reclaim."""
SCALE_DOWN_TAINT: Final = "ToBeDeletedByClusterAutoscaler"
"""Source: kubernetes/autoscaler cluster-autoscaler/utils/taints."""
RECLAIM_CONDITION: Final = ("PreemptionScheduled", "SpotEvictionIncoming")
"""Type and reason on AKS. Source: Azure/karpenter-provider-azure pkg/controllers/node/interruption."""
_KEEP_US: Final = US_PER_HOUR
NAMESPACE: Final = "default"
"""Where Events of objects without a namespace are. Source: k8s.io/client-go tools/record/event.go, makeEvent."""


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


class Sender(NamedTuple):
    """What announces reclaims: the reason of its Events, and the component that they state."""

    name: str
    reason: str
    component: str


SENDERS: Final[Mapping[Kind, Sender]] = {
    Kind.KARPENTER_EVENTS: Sender("Karpenter", "SpotInterrupted", "karpenter"),
    Kind.NODE_TERMINATION_EVENTS: Sender(
        "the AWS Node Termination Handler", "SpotInterruption", "aws-node-termination-handler"
    ),
}
"""Sources: aws/karpenter-provider-aws pkg/controllers/interruption/events/events.go, kubernetes-sigs/karpenter
pkg/operator; aws/aws-node-termination-handler pkg/observability/k8s-events.go."""
EVENT_KINDS: Final = frozenset({Kind.EVENTS, Kind.FAILED_CREATES, *SENDERS})
"""Kinds that add knowledge, but no GPU-time."""


class ReclaimEvents(StatePart[Struct]):
    """Passes the Events of all senders on to the signals of nodes, which are the state."""

    name = "reclaim_event"
    kinds = tuple(SENDERS)

    def __init__(self, nodes: Nodes, signals: NodeSignals) -> None:
        self._nodes = nodes
        self._signals = signals

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`; the same Event again, and one of an unknown node, change nothing."""
        if not isinstance(found, Event) or not _is_genuine(found):
            return
        times_us = sorted(min(to_us(time), at_us) for time in _times(found)) or [at_us]
        if node := self._node_of(found, times_us[-1]):
            reclaim_us = next((each for each in times_us if each >= node.created_us), None)
            if reclaim_us is not None:
                self._signals.reclaimed(node, reclaim_us=reclaim_us, at_us=at_us)

    def _node_of(self, event: Event, last_us: int) -> NodeRecord | None:
        """The node by UID; the Node Termination Handler on a node writes only its name."""
        named = event.involved_object
        account = self._nodes.accounts.get(named.uid) if named.uid else self._nodes.lineage.at(named.name, last_us)
        if account is None or is_stand_in(account.record.uid) or account.record.name != named.name:
            return None
        return account.record


def _is_genuine(event: Event) -> bool:
    """Whether it looks like one of the senders; the author of an Event chooses every character."""
    component = event.reporting_component or (event.source.component if event.source else "")
    return (
        event.metadata.namespace == NAMESPACE
        and event.involved_object.kind == "Node"
        and any((event.reason, component) == (each.reason, each.component) for each in SENDERS.values())
    )


def _times(event: Event) -> Iterator[datetime]:
    """When it was sent, first and last; its creation, if it states neither."""
    repeated = event.series.last_observed_time if event.series else None
    stated = [each for each in (event.event_time, repeated, event.first_timestamp, event.last_timestamp) if each]
    if stated:
        yield from stated
    elif event.metadata.creation_timestamp:
        yield event.metadata.creation_timestamp
