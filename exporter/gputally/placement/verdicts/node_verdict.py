"""Why a pod waits, as far as the nodes and the pods on them decide."""

from collections.abc import Iterable
from itertools import chain, islice
from typing import Final

from msgspec import structs

from gputally.model.placement.needs import SHARES, TOO_MANY, Needs
from gputally.model.placement.situation import Situation
from gputally.model.placement.verdict import Eviction, Obstacle, ObstacleKind, Reason, Verdict
from gputally.placement.candidates import (
    Candidates,
    Excluding,
    available_on,
    candidates_for,
    counts_of,
    large,
    main_resource,
    with_enough,
)
from gputally.placement.eviction import would_evict
from gputally.placement.exclusions import exclusions
from gputally.placement.fit import by_importance, fits, must_go
from gputally.placement.node_room import NodeRoom, add
from gputally.placement.room import Room
from gputally.placement.scheduler_text import unmodelled
from gputally.placement.verdicts.blocked import blocked
from gputally.placement.verdicts.node_obstacles import best_of, held_by, on_excluding

_GPUS_SUFFICE: Final = (Reason.INVERSION, Reason.FRAGMENTED, Reason.CAPACITY)
"""These stand whatever pods without GPUs take."""
_BEYOND: Final = (SHARES, TOO_MANY)
"""Nothing can be said about the nodes of such pods."""
_MAX_STOPPING: Final = 64
"""Nodes with stopping pods that are looked at; soon, they are others."""


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
    """It fits now, or as soon as pods have stopped or are preempted."""
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
    """It fits on one of these nodes as soon as the pods that are stopping there have stopped."""
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
