"""The nodes that accept a pod, and those that do not, with the reasons."""

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from gputally.model.needs import Amounts, Needs
from gputally.model.price import Asset
from gputally.model.quantities import PODS
from gputally.model.verdicts import Obstacle, ObstacleKind
from gputally.placement.answer_cache import AboutNeeds, Exclusions
from gputally.placement.fit import fits
from gputally.placement.node_group import GroupPart, NodeGroup, NodeGrouping, WholeGroup
from gputally.placement.node_room import NodeRoom
from gputally.placement.room import Room
from gputally.placement.taints_and_affinity import exclusions, keys_of, named_by

_AT_ONCE: Final = 16
"""Nodes that are counted together, since to count each takes longer than to look at it."""


class Excluding(NamedTuple):
    """Nodes with what keeps the pod away from them."""

    obstacles: tuple[Obstacle, ...]
    group: NodeGroup


class Candidates(NamedTuple):
    """All nodes, for one class of pods."""

    accepting: list[NodeGroup]
    excluding: list[Excluding]


def candidates_for(needs: Needs, room: Room) -> Candidates:
    """The groups of nodes by whether they accept the pod, whatever their size."""
    grouping = room.grouping(keys_of(needs))
    groups = grouping.current(room.nodes)
    named = _named(needs, room, grouping)
    room.answers.looked_at += len(groups)
    known = room.answers.of(needs)
    found = Candidates([], [])
    for group in groups:
        if named and (apart := named.get(group.number)):
            _put_apart(needs, apart, room, found)
            if len(apart) == len(group.nodes):
                continue
            _put(found, _exclusions(needs, group, known, apart), GroupPart(group, apart))
        elif (obstacles := known.exclusions.get(group.number)) is None:
            _put(found, _exclusions(needs, group, known), group)
        else:
            _put(found, obstacles, group)
    return found


def accepts(needs: Needs, room: Room, name: str) -> bool:
    """Whether the node of that name exists and accepts the pod, whatever its size."""
    node = room.nodes.get(name)
    if node is None or node.place is None:
        return False
    room.answers.looked_at += 1
    if named_by(needs) != ():
        return not exclusions(needs, node.place)
    grouping = room.grouping(keys_of(needs))
    grouping.current(room.nodes)
    group = grouping.group_of(name)
    known = room.answers.of(needs)
    obstacles = known.exclusions.get(group.number)
    return not (_exclusions(needs, group, known) if obstacles is None else obstacles)


def assets_for(needs: Needs, room: Room) -> frozenset[Asset] | None:
    """What the nodes are that the pod selects and that are large enough for it; None if it selects no node that exists.

    Of these, those whose taints it tolerates and that are not cordoned, if there are any.
    """
    found = candidates_for(needs, room)
    accepting = _assets(needs, found.accepting)
    if accepting:
        return accepting
    kept_off = [
        each.group for each in found.excluding if all(what.kind is not ObstacleKind.SELECTOR for what in each.obstacles)
    ]
    return _assets(needs, kept_off) if kept_off or found.accepting else None


def _assets(needs: Needs, groups: Iterable[NodeGroup]) -> frozenset[Asset]:
    found = set[Asset]()
    for group in groups:
        kinds = group.kinds
        group.answers.looked_at += len(kinds)
        found.update(asset for offered, asset in kinds if asset and is_large(needs.amounts, offered))
    return frozenset(found)


def main_resource(needs: Needs) -> tuple[str, int]:
    """The GPUs by which nodes are searched, and how many the pod requests; pods without any are counted by `pods`."""
    amounts = dict(needs.amounts)
    return next(((name, amounts[name]) for name in needs.gpus if name in amounts), (PODS, amounts.get(PODS, 1)))


def large(needs: Needs, group: NodeGroup) -> int:
    """How many nodes of the group are large enough for the pod."""
    return group.large(needs)


def is_large(amounts: Amounts, offered: Amounts) -> bool:
    """Whether an empty node would be large enough."""
    return fits(amounts, dict(offered))


def available_on(node: NodeRoom, needs: Needs, uid: str = "", *, may_preempt: bool | None = None) -> Mapping[str, int]:
    """What the pod could have on the node; by default, by its own policy. `uid` as in `Situation`."""
    preempts = needs.may_preempt if may_preempt is None else may_preempt
    if uid and uid in node.nominated:
        return node.available_to(uid, needs.priority, may_preempt=preempts)
    return node.available(needs.priority, may_preempt=preempts)


def with_enough(
    needs: Needs, groups: Iterable[NodeGroup], *, may_preempt: bool, least: int | None = None
) -> Iterator[NodeRoom]:
    """Nodes on which at least so many GPUs are available, those with the most first; by default, as many as it needs.

    Other resources may be missing.
    """
    gpu, needed = main_resource(needs)
    for group in groups:
        steps = group.ladder(gpu, needs.priority, may_preempt=may_preempt)
        nodes = steps.downwards(needed if least is None else least)
        while some := tuple(islice(nodes, _AT_ONCE)):
            group.answers.looked_at += len(some)
            yield from some


def counts_of(needs: Needs, candidates: Candidates) -> tuple[tuple[ObstacleKind, int], ...]:
    """How many nodes have which kind of obstacle, if the pod fits on none."""
    counts: dict[ObstacleKind, int] = {}
    for obstacles, group in candidates.excluding:
        for kind in {each.kind for each in obstacles}:
            counts[kind] = counts.get(kind, 0) + len(group.nodes)
    for group in candidates.accepting:
        enough = large(needs, group)
        counts[ObstacleKind.RESOURCE] = counts.get(ObstacleKind.RESOURCE, 0) + enough
        counts[ObstacleKind.SIZE] = counts.get(ObstacleKind.SIZE, 0) + len(group.nodes) - enough
    return tuple(sorted((kind, count) for kind, count in counts.items() if count))


def _put(found: Candidates, obstacles: Exclusions, group: NodeGroup) -> None:
    if obstacles:
        found.excluding.append(Excluding(obstacles, group))
    else:
        found.accepting.append(group)


def _put_apart(needs: Needs, nodes: Mapping[str, NodeRoom], room: Room, found: Candidates) -> None:
    """The nodes that the pod names, by the obstacles there."""
    groups: dict[Exclusions, WholeGroup] = {}
    for node in nodes.values():
        assert node.place is not None
        groups.setdefault(exclusions(needs, node.place), WholeGroup(room.answers)).put(node)
    room.answers.looked_at += len(nodes)
    for obstacles, group in groups.items():
        _put(found, obstacles, group)


def _named(needs: Needs, room: Room, grouping: NodeGrouping) -> dict[int, dict[str, NodeRoom]]:
    """The nodes that the pod names, by the number of their group."""
    found: dict[int, dict[str, NodeRoom]] = {}
    if (names := named_by(needs)) != ():
        for node in room if names is None else room.hosts(names):
            found.setdefault(grouping.group_of(node.name).number, {})[node.name] = node
    return found


def _exclusions(needs: Needs, group: WholeGroup, known: AboutNeeds, apart: Container[str] = ()) -> Exclusions:
    """What keeps the pod from all nodes of the group but some."""
    if (found := known.exclusions.get(group.number)) is None:
        place = next(node.place for name, node in group.nodes.items() if name not in apart)
        assert place is not None
        group.answers.looked_at += 1
        found = known.exclusions[group.number] = exclusions(needs, place)
        group.answers.added(known, found)
    return found
