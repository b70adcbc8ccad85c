"""Why a pod waits: what keeps it from all nodes, then what the nodes and the pods on them decide."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from msgspec import structs

from gputally.model.needs import SHARES, TOO_MANY, Needs, Situation, Taken
from gputally.model.verdicts import Eviction, Obstacle, ObstacleKind, Reason, Verdict
from gputally.placement.candidates import (
    Candidates,
    Excluding,
    available_on,
    candidates_for,
    counts_of,
    is_large,
    large,
    main_resource,
    with_enough,
)
from gputally.placement.eviction import allowed, would_evict
from gputally.placement.fit import by_importance, fits, must_go
from gputally.placement.gangs import gang_obstacles
from gputally.placement.node_obstacles import ALL, COMPARED_NODES, best_of, held_by, on_accepting, on_excluding
from gputally.placement.node_room import NodeRoom, add
from gputally.placement.room import Room
from gputally.placement.scheduler_text import unmodelled
from gputally.placement.taints_and_affinity import exclusions

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
_GPUS_SUFFICE: Final = (Reason.INVERSION, Reason.FRAGMENTED, Reason.CAPACITY)
"""Reasons that stand whatever pods without GPUs take."""
_BEYOND: Final = (SHARES, TOO_MANY)
"""Nothing can be said about the nodes of such pods."""
_MAX_STOPPING: Final = 64
"""Nodes with stopping pods that are looked at; soon, they are others."""
NEVER: Final = "preemptionPolicy: Never"


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


def node_verdict(needs: Needs, room: Room, situation: Situation) -> Verdict:
    """The first of the reasons about nodes that applies."""
    if beyond := [each for each in needs.unmodelled if each in _BEYOND]:
        return _other(beyond)
    candidates = candidates_for(needs, room)
    if not any(large(needs, group) for group in candidates.accepting):
        return _too_small(needs, room, situation, candidates)
    found = _fitting(needs, room, situation, candidates) or blocked(needs, room, situation, candidates)
    if not room.is_complete and found.reason not in _GPUS_SUFFICE:
        return Verdict(reason=Reason.UNKNOWN)
    if found.reason in (Reason.SCHEDULABLE, Reason.OTHER):
        return found
    return structs.replace(found, counts=counts_of(needs, candidates))


def _too_small(needs: Needs, room: Room, situation: Situation, candidates: Candidates) -> Verdict:
    """No node that accepts the pod is large enough."""
    is_excluded = any(large(needs, group) for _, group in candidates.excluding)
    groups = list(candidates.excluding)
    if not is_excluded:
        groups += [Excluding((), each) for each in candidates.accepting]
    obstacles = best_of(on_excluding(needs, groups, situation, is_large=is_excluded), room)
    gpu, needed = main_resource(needs)
    if not any(dict(offered).get(gpu) for _, group in groups for offered, _ in group.kinds):
        obstacles = (Obstacle(kind=ObstacleKind.SIZE, what=gpu, needed=needed, free=0),)
    return Verdict(
        reason=Reason.EXCLUDED if is_excluded else Reason.IMPOSSIBLE,
        obstacles=obstacles,
        node=obstacles[0].node,
        counts=counts_of(needs, candidates),
    )


def _fitting(needs: Needs, room: Room, situation: Situation, candidates: Candidates) -> Verdict | None:
    """The verdict if the pod fits now, or as soon as pods have stopped or are preempted."""
    node = _first_fit(needs, room, situation, candidates)
    eviction = None if node else would_evict(needs, room, uid=situation.uid)
    if (node or eviction) and (said := unmodelled(situation.text)):
        return _other(each.text for each in said)
    if node:
        return Verdict(reason=Reason.SCHEDULABLE)
    return (
        _stopping(needs, room, situation, [situation.nominated_node])
        or (_evicting(needs, room.nodes[eviction.node], eviction, situation) if eviction else None)
        or _stopping(needs, room, situation, sorted(room.stopping))
    )


def _other(said: Iterable[str]) -> Verdict:
    obstacles = [Obstacle(kind=ObstacleKind.UNMODELLED, what=each) for each in said]
    return Verdict(reason=Reason.OTHER, obstacles=tuple(obstacles))


def _first_fit(needs: Needs, room: Room, situation: Situation, candidates: Candidates) -> NodeRoom | None:
    """A node on which the pod fits; first of all, that to which it is nominated."""
    own = room.nodes.get(situation.nominated_node)
    nodes = with_enough(needs, candidates.accepting, may_preempt=False)
    if own and own.place and not exclusions(needs, own.place):
        nodes = chain([own], nodes)
    free = ((node, available_on(node, needs, situation.uid, may_preempt=False)) for node in nodes)
    return next((node for node, available in free if fits(needs.amounts, available)), None)


def _evicting(needs: Needs, node: NodeRoom, eviction: Eviction, situation: Situation) -> Verdict:
    """The preemption goes on, or its victims are stopping already."""
    if not node.stopping.issuperset(eviction.victims):
        return Verdict(reason=Reason.PREEMPTING, node=node.name, victims=eviction.victims)
    free = available_on(node, needs, situation.uid, may_preempt=False)
    going = {uid: node.taken[uid] for uid in eviction.victims}
    return _waiting(node, tuple(held_by(needs, node, going, free)), eviction.victims)


def _stopping(needs: Needs, room: Room, situation: Situation, names: Iterable[str]) -> Verdict | None:
    """The verdict if the pod fits on one of these nodes as soon as the pods that are stopping there have stopped."""
    nodes = (room.nodes[name] for name in names if name in room.stopping)
    accepting = (node for node in islice(nodes, _MAX_STOPPING) if node.place and not exclusions(needs, node.place))
    return next(filter(None, (_after_stopping(needs, node, situation) for node in accepting)), None)


def _after_stopping(needs: Needs, node: NodeRoom, situation: Situation) -> Verdict | None:
    stopping = {uid: node.taken[uid] for uid in node.stopping}
    free = available_on(node, needs, situation.uid, may_preempt=False)
    empty = dict(free)
    for each in stopping.values():
        add(empty, each.amounts)
    if not fits(needs.amounts, empty):
        return None
    going = {uid: stopping[uid] for uid in must_go(needs.amounts, empty, by_importance(stopping.items()))}
    return _waiting(node, tuple(held_by(needs, node, going, free)), tuple(going))


def _waiting(node: NodeRoom, obstacles: tuple[Obstacle, ...], victims: tuple[str, ...]) -> Verdict:
    return Verdict(reason=Reason.VICTIMS_STOPPING, obstacles=obstacles, node=node.name, victims=victims)


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
