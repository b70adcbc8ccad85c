"""The nodes that accept a pod, and those that do not, with the reasons."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from gputally.model.placement.needs import PODS, Amounts, Needs
from gputally.model.placement.verdict import Obstacle, ObstacleKind
from gputally.placement.exclusions import exclusions, keys_of
from gputally.placement.fit import fits
from gputally.placement.node_group import NodeGroup
from gputally.placement.node_room import NodeRoom
from gputally.placement.room import Room

_MAX_MEMO: Final = 4096


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
    found = Candidates([], [])
    for group in room.groups(keys_of(needs)):
        if obstacles := _exclusions(needs, group):
            found.excluding.append(Excluding(obstacles, group))
        else:
            found.accepting.append(group)
    return found


def main_resource(needs: Needs) -> tuple[str, int]:
    """The GPUs by which nodes are searched, and how many the pod requests; pods without any are counted by `pods`."""
    amounts = dict(needs.amounts)
    return next(((name, amounts[name]) for name in needs.gpus if name in amounts), (PODS, amounts.get(PODS, 1)))


def large(needs: Needs, group: NodeGroup) -> int:
    """How many nodes of the group are large enough for the pod."""
    if (known := group.large.get(needs.amounts)) is None:
        if len(group.large) >= _MAX_MEMO:
            group.large.clear()
        known = sum(count for offered, count in group.offers.items() if is_large(needs.amounts, offered))
        group.large[needs.amounts] = known
    return known


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
        yield from group.ladder(gpu, needs.priority, may_preempt=may_preempt).downwards(
            needed if least is None else least
        )


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


def _exclusions(needs: Needs, group: NodeGroup) -> tuple[Obstacle, ...]:
    if (found := group.memo.get(needs)) is None:
        if len(group.memo) >= _MAX_MEMO:
            group.memo.clear()
        found = group.memo[needs] = exclusions(needs, group.example)
    return found
