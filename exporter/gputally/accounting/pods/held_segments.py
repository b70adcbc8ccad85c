"""Passes the segments of pods to the nodes that they are on."""

from gputally.accounting.nodes.nodes import Nodes
from gputally.model.pod_record import PodRecord


def update_nodes(nodes: Nodes, before: PodRecord | None, record: PodRecord, *, kept: int, at_us: int) -> None:
    """Update the nodes' held segments; a pod moves from a stand-in to its node once that is known."""
    old = before.segments if before else ()
    if before and before.node_uid and before.node_uid != record.node_uid:
        nodes.hold(before.node_uid, old, (), at_us=at_us)
        old, kept = (), 0
    if not len(old) == kept == len(record.segments):
        nodes.hold(record.node_uid, old[kept:], record.segments[kept:], at_us=at_us)
