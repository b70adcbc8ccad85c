"""The smallest sets of obstacles between a pod and a node."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final

from msgspec import structs

from gputally.model.needs import Needs, Situation, Taken
from gputally.model.verdicts import Obstacle, ObstacleKind
from gputally.placement.candidates import Excluding, available_on, with_enough
from gputally.placement.fit import by_importance, fits, must_go
from gputally.placement.node_group import NodeGroup
from gputally.placement.node_room import NodeRoom, add
from gputally.placement.room import Room, is_planned

COMPARED_NODES: Final = 16
"""Nodes of each group of which the obstacles are compared: those with the most GPUs available."""
COMPARED_GROUPS: Final = 32
ALL: Final = -(2**63)
"""Less than is available anywhere."""


def best_of(explanations: Iterable[tuple[Obstacle, ...]], room: Room) -> tuple[Obstacle, ...]:
    """The fewest obstacles, then the smallest shortage and the fewest pods; none if there are no explanations."""
    return min(explanations, key=lambda each: _cost(each, room), default=())


def on_accepting(
    needs: Needs, groups: Iterable[NodeGroup], situation: Situation, *, least: int | None = None
) -> Iterator[tuple[Obstacle, ...]]:
    """What keeps the pod from the nodes that accept it and are large enough; `least` as in `with_enough`."""
    for group in groups:
        nodes = with_enough(needs, [group], may_preempt=needs.may_preempt, least=least)
        large = (node for node in nodes if fits(needs.amounts, dict(node.offered)))
        for node in islice(large, COMPARED_NODES):
            yield on_node(needs, node, (), situation)


def on_excluding(
    needs: Needs, groups: Iterable[Excluding], situation: Situation, *, is_large: bool
) -> Iterator[tuple[Obstacle, ...]]:
    """What keeps the pod from all nodes; with `is_large`, from those that are large enough."""
    for obstacles, group in islice(sorted(groups, key=lambda each: len(each.obstacles)), COMPARED_GROUPS):
        nodes = with_enough(needs, [group], may_preempt=needs.may_preempt, least=ALL)
        found = (node for node in nodes if not is_large or fits(needs.amounts, dict(node.offered)))
        for node in chain(_fitting(needs, group), islice(found, COMPARED_NODES)):
            yield on_node(needs, node, obstacles, situation)


def _fitting(needs: Needs, group: NodeGroup) -> Iterator[NodeRoom]:
    """The first node on which the pod would fit at once, or with a preemption."""
    nodes = with_enough(needs, [group], may_preempt=needs.may_preempt)
    yield from islice((node for node in nodes if fits(needs.amounts, available_on(node, needs))), 1)


def on_node(
    needs: Needs, node: NodeRoom, exclusions: tuple[Obstacle, ...], situation: Situation
) -> tuple[Obstacle, ...]:
    """All obstacles on the node: what excludes the pod, what is too small, and pods that hold what it needs."""
    key = ("obstacles", needs.amounts, needs.priority, needs.may_preempt, exclusions)
    is_plain = not (situation.uid and situation.uid in node.nominated)
    if is_plain and isinstance(known := node.memo.get(key), tuple):
        return known
    offered = dict(node.offered)
    sizes = [
        Obstacle(kind=ObstacleKind.SIZE, what=resource, node=node.name, needed=amount, free=offered.get(resource, 0))
        for resource, amount in needs.amounts
        if offered.get(resource, 0) < amount
    ]
    held = _held_on_larger(
        needs, node, situation.uid, {each.what: (each.needed or 0) - (each.free or 0) for each in sizes}
    )
    named = [structs.replace(each, node=node.name) for each in exclusions]
    found = (*named, *sizes, *held)
    if is_plain:
        node.memo[key] = found
    return found


def held_by(
    needs: Needs, node: NodeRoom, going: Mapping[str, Taken], available: Mapping[str, int]
) -> Iterator[Obstacle]:
    """The pods `going`, all of which must go, by the resource that is missing; GPUs first."""
    rest = dict(going)
    for resource, amount in sorted(needs.amounts, key=lambda each: each[0] not in needs.gpus):
        if (free := available.get(resource, 0)) >= amount:
            continue
        pods = tuple([key for key, each in rest.items() if any(name == resource for name, _ in each.amounts)])
        rest = {key: each for key, each in rest.items() if key not in pods}
        if pods:
            yield Obstacle(
                kind=ObstacleKind.RESOURCE,
                what=resource,
                node=node.name,
                needed=amount,
                free=max(free, 0),
                pods=pods,
            )


def _held_on_larger(needs: Needs, node: NodeRoom, uid: str, more: Mapping[str, int]) -> Iterator[Obstacle]:
    """The pods that must go on such a node that offers so much `more` that it is large enough; with its own amounts."""
    free = dict(available_on(node, needs, uid))
    add(free, tuple(more.items()))
    for each in held_by(needs, node, _going(needs, node, free, uid), free):
        extra = more.get(each.what, 0)
        needed, left = (each.needed or 0) - extra, (each.free or 0) - extra
        yield structs.replace(each, needed=needed, free=max(left, 0)) if extra else each


def _holders(needs: Needs, node: NodeRoom, uid: str) -> Iterator[tuple[str, Taken]]:
    """The pods that it cannot preempt, those first that should stay, as those of a forecast; stopping ones last."""
    fixed = [
        (key, each)
        for key, each in (*node.taken.items(), *node.nominated.items())
        if key != uid and not (needs.may_preempt and each.priority < needs.priority)
    ]
    fixed = [pod for pod in fixed if pod[0] in node.taken or pod[1].priority >= needs.priority]
    yield from sorted(by_importance(fixed), key=lambda pod: (not is_planned(pod[0]), pod[0] in node.stopping))


def _going(needs: Needs, node: NodeRoom, free: Mapping[str, int], uid: str) -> Mapping[str, Taken]:
    """A minimal set of pods that must go for the pod to fit."""
    holders = dict(_holders(needs, node, uid))
    empty = dict(free)
    for each in holders.values():
        add(empty, each.amounts)
    return {key: holders[key] for key in must_go(needs.amounts, empty, holders.items())}


def _cost(obstacles: tuple[Obstacle, ...], room: Room) -> tuple[object, ...]:
    """Few obstacles are best, then a small shortage, few pods, and the first name, so that a verdict does not flap.

    What pods of a forecast hold is the last resort: no pod that exists is to blame for it. Pods that serve users do not
    end by themselves: others are named rather than as many of these.
    """
    sizes = [each for each in obstacles if each.kind is ObstacleKind.SIZE]
    shortage = sum(((each.needed or 0) - (each.free or 0)) / (each.needed or 1) for each in sizes)
    return (
        sum(is_planned(uid) for each in obstacles for uid in each.pods),
        len(obstacles),
        shortage,
        sum(len(each.pods) for each in obstacles),
        sum(room.serves(each.node, uid) for each in obstacles for uid in each.pods),
        obstacles[0].node if obstacles else "",
    )
