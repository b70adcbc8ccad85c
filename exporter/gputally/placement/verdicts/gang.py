"""Whether the waiting members of a gang fit at once."""

from collections.abc import Iterator
from typing import Final

from gputally.model.placement.needs import Needs
from gputally.model.placement.situation import Situation
from gputally.model.placement.verdict import Obstacle, ObstacleKind, Reason
from gputally.placement.candidates import available_on, candidates_for
from gputally.placement.fit import copies, fits
from gputally.placement.node_room import add
from gputally.placement.room import Room

MEMBERS: Final = "members"
"""Of these, too few exist; else too few fit at once."""
_ALONE: Final = (Reason.SCHEDULABLE, Reason.PREEMPTING)


def gang_obstacles(needs: Needs, room: Room, situation: Situation, alone: Reason) -> Iterator[Obstacle]:
    """Too few members exist; or they do not fit at once, though the pod does, of which `alone` is the verdict."""
    if (gang := situation.gang) is None:
        return
    if gang.members < gang.least:
        yield Obstacle(kind=ObstacleKind.GANG, what=f"{gang.name}: {MEMBERS}", needed=gang.least, free=gang.members)
    if alone in _ALONE:
        needed = max(gang.least - gang.bound, 0)
        fitting = _fitting(gang.waiting or ((needs, needed),), room, needed)
        if fitting < needed:
            yield Obstacle(kind=ObstacleKind.GANG, what=gang.name, needed=needed, free=fitting)


def _fitting(waiting: tuple[tuple[Needs, int], ...], room: Room, needed: int) -> int:
    """How many of the members fit at once, up to `needed`.

    Of members with different needs, those with the most GPUs are placed first, where the fewest are available; another
    order may place more.
    """
    if len(waiting) == 1:
        needs, count = waiting[0]
        return min(count, _all_copies(needs, room, most=needed))
    taken: dict[str, dict[str, int]] = {}
    fitting = 0
    for needs, count in sorted(waiting, key=lambda each: -_gpus(each[0])):
        for _ in range(min(count, needed)):
            if fitting >= needed or not _place(needs, room, taken):
                break
            fitting += 1
    return fitting


def _all_copies(needs: Needs, room: Room, *, most: int) -> int:
    found = 0
    for group in candidates_for(needs, room).accepting:
        for node in group.nodes.values():
            found += copies(needs.amounts, available_on(node, needs))
            if found >= most:
                return found
    return found


def _place(needs: Needs, room: Room, taken: dict[str, dict[str, int]]) -> bool:
    """Place a member on the fullest node on which it fits beside the others."""
    groups = candidates_for(needs, room).accepting
    nodes = (
        (node.name, taken.get(node.name) or available_on(node, needs))
        for each in groups
        for node in each.nodes.values()
    )
    fitting = ((name, available) for name, available in nodes if fits(needs.amounts, available))
    name, available = min(fitting, key=lambda pair: sum(pair[1].get(gpu, 0) for gpu in needs.gpus), default=("", {}))
    if not name:
        return False
    rest = taken[name] = dict(available)
    add(rest, needs.amounts, sign=-1)
    return True


def _gpus(needs: Needs) -> int:
    return sum(amount for resource, amount in needs.amounts if resource in needs.gpus)
