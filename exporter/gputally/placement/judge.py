"""Why a pod waits."""

from collections.abc import Iterator
from typing import Final

from gputally.model.placement.needs import Needs
from gputally.model.placement.situation import Situation
from gputally.model.placement.verdict import Obstacle, ObstacleKind, Reason, Verdict
from gputally.placement.room import Room
from gputally.placement.verdicts.gang import gang_obstacles
from gputally.placement.verdicts.node_verdict import node_verdict

NOWHERE: Final = Situation()
_REASONS: Final = {
    ObstacleKind.SCHEDULER: Reason.NO_SCHEDULER,
    ObstacleKind.QUEUE: Reason.QUEUED,
    ObstacleKind.GATE: Reason.GATED,
    ObstacleKind.QUOTA: Reason.QUOTA,
    ObstacleKind.CLAIM: Reason.CLAIM,
    ObstacleKind.GANG: Reason.GANG,
}
"""The reasons of obstacles that concern all nodes, in the order of `Reason`."""
_BLOCKED: Final = frozenset(Reason) - {Reason.SCHEDULABLE, Reason.PREEMPTING, Reason.UNKNOWN}


def judged(needs: Needs, room: Room, situation: Situation = NOWHERE) -> Verdict:
    """The verdict on a waiting pod, with a minimal set of obstacles; see `Reason` and `Verdict`.

    Of a gang whose pod does not fit alone, the obstacles are those of that pod.
    What keeps it from all nodes comes first; if it would not fit afterwards either, its nodes add their obstacles.
    """
    on_node = node_verdict(needs, room, situation)
    general = (*_general(needs, situation), *gang_obstacles(needs, room, situation, on_node.reason))
    if not general:
        return on_node
    return Verdict(
        reason=_reason(general[0], situation),
        obstacles=(*general, *on_node.obstacles) if on_node.reason in _BLOCKED else general,
        node=on_node.node,
        victims=on_node.victims,
        counts=on_node.counts,
    )


def _reason(first: Obstacle, situation: Situation) -> Reason:
    quota = situation.quota
    if first.kind is ObstacleKind.QUOTA and quota and quota.needed > quota.hard:
        return Reason.QUOTA_NEVER
    return _REASONS[first.kind]


def _general(needs: Needs, situation: Situation) -> Iterator[Obstacle]:
    """What keeps the pod from all nodes, in the order of `Reason`."""
    if not situation.has_scheduler:
        yield Obstacle(kind=ObstacleKind.SCHEDULER, what=needs.scheduler)
    if situation.queue:
        yield Obstacle(kind=ObstacleKind.QUEUE, what=situation.queue)
    for gate in needs.gates:
        yield Obstacle(kind=ObstacleKind.GATE, what=gate)
    if quota := situation.quota:
        free = max(quota.hard - quota.used, 0)
        yield Obstacle(kind=ObstacleKind.QUOTA, what=f"{quota.name}: {quota.what}", needed=quota.needed, free=free)
    for claim in situation.open_claims:
        yield Obstacle(kind=ObstacleKind.CLAIM, what=claim)
