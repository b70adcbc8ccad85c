"""Pods that compete for the same nodes: how many wait, and what they leave to planned pods if they go first."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.waiting.snapshot import WaitingPod
from gputally.answers.viewer import Viewer
from gputally.model.needs import Needs
from gputally.model.verdicts import Reason
from gputally.placement.room import PLANNED, Room
from gputally.placement.what_if import seat, seat_nominated

NOT_ADMITTED: Final = frozenset({Reason.NO_SCHEDULER, Reason.QUEUED, Reason.GATED, Reason.QUOTA_NEVER, Reason.QUOTA})
"""No scheduler looks at these pods."""
_NEVER_NEXT: Final = NOT_ADMITTED | {Reason.IMPOSSIBLE, Reason.EXCLUDED}
MOST_NODE_CHECKS: Final = 300_000
"""Nodes, or groups of them, after which further pods are left out; each takes some microseconds."""
MOST_PLACED: Final = 1_000
"""Pods after which further ones are left out."""
_HELD_BACK: Final = NOT_ADMITTED | {Reason.CLAIM, Reason.GANG, Reason.UNKNOWN, Reason.OTHER}
"""Reasons of pods that wait for something else than the nodes."""


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


class QueueSimulation:
    """A room in which the pods of the `queue` take places, in its order; it `is_complete` unless they were too many."""

    def __init__(self, queue: Sequence[WaitingPod], room: Room) -> None:
        self.room = room
        self.is_complete = True
        self._queue = list(queue)
        self._looked_at = self.room.answers.looked_at
        self._turns = 0
        self._placed: list[Needs] = []
        """What those need that have a place."""

    def place_before(self, needs: Needs) -> None:
        """Let those of the same or a higher priority than the planned pods take places, as far as there is room."""
        while self._queue and _needs(self._queue[0]).priority >= needs.priority:
            if not self._may_go_on():
                self.is_complete = False
                return
            alike = self._next()
            placed = self._seat(alike)
            self._placed += [_needs(alike[0])] * placed

    def placed(self, needs: Needs) -> int:
        """How many pods of the same or a higher priority have a place with GPUs of the same resource."""
        return sum(each.priority >= needs.priority and not {*each.gpus}.isdisjoint(needs.gpus) for each in self._placed)

    def _may_go_on(self) -> bool:
        looked_at = self.room.answers.looked_at - self._looked_at
        return looked_at < MOST_NODE_CHECKS and len(self._placed) < MOST_PLACED

    def _next(self) -> Sequence[WaitingPod]:
        """The first pod of the queue, and those behind it that are alike."""
        first = self._queue[0]
        alike = list(takewhile(lambda each: _is_alike(each, first), self._queue)) or [first]
        del self._queue[: len(alike)]
        return alike

    def _seat(self, alike: Sequence[WaitingPod]) -> int:
        first, needs, self._turns = alike[0], _needs(alike[0]), self._turns + 1
        key = f"{PLANNED}first {self._turns} "
        situation = first.situation
        where = situation.nominated_node if situation.uid else ""
        if where and seat_nominated(needs, self.room, situation.uid, where, key=key):
            return 1
        return seat(needs, self.room, len(alike), key=key)


def queue_simulation(now: PendingNow, viewer: Viewer, *, least: int) -> QueueSimulation | None:
    """The pods with at least that priority, by priority and then by age; None if there are none.

    Those that the reader may not know stay out.
    """
    waiting = [each for each in now.waiting if viewer.sees(each.tenant) and _waits_for_nodes(each)]
    ahead = [each for each in waiting if _needs(each).priority >= least]
    queue = sorted(ahead, key=lambda each: (-_needs(each).priority, each.since_us, each.record.uid))
    return QueueSimulation(queue, now.room.copy()) if queue else None


def _is_alike(one: WaitingPod, other: WaitingPod) -> bool:
    return one.needs == other.needs and not one.situation.uid and not other.situation.uid


def _waits_for_nodes(waiting: WaitingPod) -> bool:
    return waiting.needs is not None and waiting.verdict.reason not in _HELD_BACK


def _needs(waiting: WaitingPod) -> Needs:
    assert waiting.needs is not None
    return waiting.needs
