"""Gangs: whether their waiting members fit at once."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final

from gputally.model.needs import GangState, Needs, Situation
from gputally.model.verdicts import MEMBERS, Obstacle, ObstacleKind, Reason
from gputally.placement.candidates import available_on, candidates_for, main_resource, with_enough
from gputally.placement.fit import copies
from gputally.placement.node_room import NodeRoom, add
from gputally.placement.room import Room
from gputally.placement.taints_and_affinity import keys_of

MOST_NODES: Final = 1000
"""Nodes that are looked at for one gang, once for each kind of members: a millisecond or two."""
_MOST_INDEXES: Final = 4
"""Sets of label keys and priorities of members: for each one, all nodes may have to be put in order."""
_MOST_TASKS: Final = 4
"""Tasks of a gang that are placed alone."""
_ALONE: Final = (Reason.SCHEDULABLE, Reason.PREEMPTING)


def gang_obstacles(needs: Needs, room: Room, situation: Situation, alone: Reason) -> Iterator[Obstacle]:
    """Too few members exist; or they do not fit at once, though the pod does, of which `alone` is the verdict.

    Anyone may create gangs. Of one that takes too long to place, nobody says that it does not fit.
    """
    if (gang := situation.gang) is None:
        return
    if gang.members < gang.least:
        yield Obstacle(kind=ObstacleKind.GANG, what=f"{gang.name}: {MEMBERS}", needed=gang.least, free=gang.members)
    for task in gang.tasks:
        if task.members < task.least:
            what = f"{gang.name}, task {task.name}: {MEMBERS}"
            yield Obstacle(kind=ObstacleKind.GANG, what=what, needed=task.least, free=task.members)
    if alone in _ALONE and not gang.is_mixed:
        needed = max(gang.least - gang.bound, 0)
        found = fitting(gang.waiting or ((needs, needed),), room, needed)
        if found is not None and found < needed:
            yield Obstacle(kind=ObstacleKind.GANG, what=gang.name, needed=needed, free=found)
        else:
            yield from _tasks_that_do_not_fit(gang, room)


def _tasks_that_do_not_fit(gang: GangState, room: Room) -> Iterator[Obstacle]:
    """Enough members fit, but not as many of each task as must: of one alone, or of all of them at once."""
    short = [(task, min(task.least, task.members) - task.bound) for task in gang.tasks]
    short = [(task, needed) for task, needed in short if needed > 0 and task.waiting]
    together = tuple(chain.from_iterable(_first(task.waiting, needed) for task, needed in short))
    whole = sum(needed for _, needed in short)
    fit = fitting(together, room, whole)
    if fit is None or fit >= whole:
        return
    for task, needed in short[:_MOST_TASKS]:
        found = fitting(task.waiting, room, needed)
        if found is not None and found < needed:
            what = f"{gang.name}, task {task.name}"
            yield Obstacle(kind=ObstacleKind.GANG, what=what, needed=needed, free=found)
            return
    yield Obstacle(kind=ObstacleKind.GANG, what=gang.name, needed=whole, free=fit)


def _first(waiting: Iterable[tuple[Needs, int]], most: int) -> Iterator[tuple[Needs, int]]:
    """The needs of the first members, `most` of them."""
    for needs, count in waiting:
        if most > 0:
            yield needs, min(count, most)
        most -= count


def fitting(waiting: tuple[tuple[Needs, int], ...], room: Room, needed: int) -> int | None:
    """How many of the members fit at once, up to `needed`; None if it takes too long to find out.

    Of members with different needs, those with the most GPUs are placed first, where the fewest are available; another
    order may place more.
    """
    if len({_index(needs) for needs, _ in waiting}) > _MOST_INDEXES:
        return None
    taken: dict[str, dict[str, int]] = {}
    found, left = 0, MOST_NODES
    for needs, count in sorted(waiting, key=lambda each: -_gpus(each[0])):
        if found >= needed or not left:
            break
        nodes = list(islice(_nodes(needs, room), left))
        left -= len(nodes)
        free = ((node.name, taken.get(node.name) or available_on(node, needs)) for node in nodes)
        order = free if len(waiting) == 1 else sorted(free, key=lambda pair: _gpus_of(needs, pair[1]))
        found += _place(needs, order, taken, most=min(count, needed - found))
    return found if left or found >= needed else None


def _nodes(needs: Needs, room: Room) -> Iterator[NodeRoom]:
    """Nodes with enough GPUs for a member."""
    return with_enough(needs, candidates_for(needs, room).accepting, may_preempt=needs.may_preempt)


def _place(
    needs: Needs, order: Iterable[tuple[str, Mapping[str, int]]], taken: dict[str, dict[str, int]], *, most: int
) -> int:
    """Place up to `most` equal members on the first nodes on which they fit beside the others; returns how many."""
    placed = 0
    for name, available in order:
        if placed >= most:
            break
        number = min(copies(needs.amounts, available), most - placed)
        if number:
            rest = taken[name] = dict(available)
            add(rest, needs.amounts, sign=-number)
            placed += number
    return placed


def _index(needs: Needs) -> tuple[tuple[str, ...], str, int, bool]:
    """What the nodes are put in order by; see `Room.groups` and `NodeGroup.ladder`."""
    return keys_of(needs), main_resource(needs)[0], needs.priority, needs.may_preempt


def _gpus(needs: Needs) -> int:
    return _gpus_of(needs, dict(needs.amounts))


def _gpus_of(needs: Needs, amounts: Mapping[str, int]) -> int:
    return sum(amounts.get(gpu, 0) for gpu in needs.gpus)
