"""Pods that wait for the same nodes, and may be bound first: no verdict counts them as if they had their places."""

from gputally.model.placement.needs import Needs
from gputally.pending_api.pending_now import PendingNow, Viewer


def others_waiting(now: PendingNow, needs: Needs, viewer: Viewer) -> int:
    """How many pods of the same or a higher priority wait for such GPUs on the same nodes, as far as known.

    A pod with these needs that waits itself counts as one.
    """
    others = (each.needs for each in now.waiting if each.needs and viewer.sees(each.tenant))
    return sum(each.priority >= needs.priority and _same_nodes(each, needs) for each in others)


def _same_nodes(one: Needs, other: Needs) -> bool:
    return (one.gpus, one.node_selector, one.node_terms) == (other.gpus, other.node_selector, other.node_terms)
