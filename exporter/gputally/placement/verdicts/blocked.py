"""Why a pod fits on no node that accepts it, not even if it preempts as it may."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from gputally.model.placement.needs import Needs, Taken
from gputally.model.placement.situation import Situation
from gputally.model.placement.verdict import Obstacle, ObstacleKind, Reason, Verdict
from gputally.placement.candidates import Candidates, available_on, is_large, large, main_resource, with_enough
from gputally.placement.eviction import allowed, would_evict
from gputally.placement.fit import by_importance, fits, must_go
from gputally.placement.node_room import NodeRoom, add
from gputally.placement.room import Room
from gputally.placement.verdicts.node_obstacles import ALL, COMPARED_NODES, best_of, held_by, on_accepting

NEVER: Final = "preemptionPolicy: Never"


def blocked(needs: Needs, room: Room, situation: Situation, candidates: Candidates) -> Verdict:
    """The first of the reasons that applies; without the counts."""
    if obstacles := _other_resource(needs, room, situation, candidates):
        return _held(Reason.OTHER_RESOURCE, obstacles)
    if not needs.may_preempt and (eviction := would_evict(allowed(needs), room, uid=situation.uid)):
        policy = Obstacle(kind=ObstacleKind.POLICY, what=NEVER)
        return Verdict(reason=Reason.NEVER_PREEMPTS, obstacles=(policy,), node=eviction.node, victims=eviction.victims)
    if situation.is_serving and (
        obstacles := best_of(islice(_not_serving(needs, candidates, situation), COMPARED_NODES), room)
    ):
        return _held(Reason.INVERSION, obstacles)
    obstacles = best_of(on_accepting(needs, candidates.accepting, situation, least=ALL), room)
    return _held(Reason.FRAGMENTED if _is_fragmented(needs, candidates) else Reason.CAPACITY, obstacles)


def _held(reason: Reason, obstacles: tuple[Obstacle, ...]) -> Verdict:
    return Verdict(reason=reason, obstacles=obstacles, node=obstacles[0].node)


def _other_resource(needs: Needs, room: Room, situation: Situation, candidates: Candidates) -> tuple[Obstacle, ...]:
    """What is missing on nodes with enough GPUs."""
    found = on_accepting(needs, candidates.accepting, situation)
    return best_of((each for each in found if not any(obstacle.what in needs.gpus for obstacle in each)), room)


def _not_serving(needs: Needs, candidates: Candidates, situation: Situation) -> Iterator[tuple[Obstacle, ...]]:
    """Pods that serve no users, on nodes where the pod would fit without them."""
    for node in with_enough(needs, candidates.accepting, may_preempt=needs.may_preempt, least=ALL):
        others = _others(needs, node)
        free = available_on(node, needs, situation.uid)
        empty = dict(free)
        for each in others.values():
            add(empty, each.amounts)
        if others and fits(needs.amounts, empty):
            going = {uid: others[uid] for uid in must_go(needs.amounts, empty, by_importance(others.items()))}
            yield tuple(held_by(needs, node, going, free))


def _others(needs: Needs, node: NodeRoom) -> dict[str, Taken]:
    """Pods that serve no users, and which it cannot preempt."""
    return {
        uid: each
        for uid, each in node.taken.items()
        if not each.is_serving and not (needs.may_preempt and each.priority < needs.priority)
    }


def _is_fragmented(needs: Needs, candidates: Candidates) -> bool:
    """Whether enough GPUs are available on all nodes together that are large enough."""
    gpu, needed = main_resource(needs)
    total = 0
    for group in candidates.accepting:
        if large(needs, group) == len(group.nodes):
            total += group.ladder(gpu, needs.priority, may_preempt=needs.may_preempt).total
        else:
            nodes = (node for node in group.nodes.values() if is_large(needs.amounts, node.offered))
            total += sum(max(available_on(node, needs).get(gpu, 0), 0) for node in nodes)
    return total >= needed
