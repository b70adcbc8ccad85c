"""Events that announce that a cloud takes a spot machine back.

Whoever may create Events in the namespace of node Events can forge them; elsewhere they are not read. No other object
of the API proves them, so the existing or recently deleted node that an Event names is believed to be reclaimed.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from gputally.accounting.base.state_part import StatePart
from gputally.accounting.disruptions.node_signals import NodeSignal, NodeSignals
from gputally.accounting.nodes.nodes import Nodes
from gputally.accounting.nodes.stand_in import is_stand_in
from gputally.model.kube.events import Event
from gputally.model.kube.meta import Kind, Object
from gputally.model.node_record import NodeRecord
from gputally.model.units import to_us


class Sender(NamedTuple):
    """What announces reclaims: the reason of its Events, and the component that they state."""

    name: str
    reason: str
    component: str


NAMESPACE: Final = "default"
"""Where Events of objects without a namespace are. Source: k8s.io/client-go tools/record/event.go, makeEvent."""
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


class ReclaimEvents(StatePart[NodeSignal]):
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
