"""Pods that wait for the same nodes, and may be bound first: no verdict counts them as if they had their places."""

from typing import Final

from gputally.accounting.waiting.waiting_pod import WaitingPod
from gputally.model.needs import Needs
from gputally.model.verdicts import Reason
from gputally.pending_api.pending_now import PendingNow, Viewer

NOT_ADMITTED: Final = frozenset({Reason.NO_SCHEDULER, Reason.QUEUED, Reason.GATED, Reason.QUOTA_NEVER, Reason.QUOTA})
"""No scheduler looks at these pods."""
_NEVER_NEXT: Final = NOT_ADMITTED | {Reason.IMPOSSIBLE, Reason.EXCLUDED}


def others_waiting(now: PendingNow, needs: Needs, viewer: Viewer) -> int:
    """How many pods of the same or a higher priority wait for such GPUs on the same nodes, as far as known.

    A pod with these needs that waits itself counts as one if it could be bound next.
    """
    others = (each.needs for each in now.waiting if each.needs and may_be_next(each) and viewer.sees(each.tenant))
    return sum(each.priority >= needs.priority and _same_nodes(each, needs) for each in others)


def may_be_next(waiting: WaitingPod) -> bool:
    """Whether it could be bound as soon as there is room, so that it competes with others."""
    return waiting.verdict.reason not in _NEVER_NEXT


def _same_nodes(one: Needs, other: Needs) -> bool:
    return (one.gpus, one.node_selector, one.node_terms) == (other.gpus, other.node_selector, other.node_terms)
