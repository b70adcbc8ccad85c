"""What would happen to pods that do not exist yet: they take places in a copy of the room, as the scheduler would."""

from typing import Final

from gputally.model.advice import WhatIf
from gputally.model.needs import Needs, Situation, Taken
from gputally.model.verdicts import Eviction, Reason, Verdict
from gputally.placement.candidates import available_on, candidates_for, with_enough
from gputally.placement.eviction import would_evict
from gputally.placement.fit import copies, fits
from gputally.placement.room import TRIED, Room
from gputally.placement.taints_and_affinity import exclusions
from gputally.placement.verdicts import NOWHERE, judged

MAX_EVICTIONS: Final = 256
"""Each of them compares many nodes."""
_HIGHEST: Final = 2**31 - 1
_BINDING: Final = (Reason.SCHEDULABLE, Reason.PREEMPTING, Reason.VICTIMS_STOPPING)
MOST_EVICTIONS: Final = 32
"""For equal pods; each of them compares many nodes."""


def what_if(
    needs: Needs,
    room: Room,
    situation: Situation = NOWHERE,
    *,
    count: int = 1,
) -> WhatIf:
    """What would happen to `count` identical pods that are created now, one after the other.

    As long as they fit, the scheduler preempts nobody for them; after MAX_EVICTIONS, the verdict is `preempting`.
    `situation` says what else concerns them, such as a quota.
    """
    verdict = judged(needs, room, situation)
    if verdict.reason not in _BINDING:
        return WhatIf(fitting=0, verdict=verdict)
    by_node = dict(sorted(fitting_on(needs, room).items()))
    fitting = min(sum(by_node.values()), count)
    nodes, room_for = tuple(by_node), tuple(by_node.values())
    if fitting == count:
        return WhatIf(fitting=fitting, nodes=nodes, copies=room_for)
    full = room.copy()
    for name, number in by_node.items():
        full.bind(name, f"{TRIED}{name}", taken_by(needs, number, needs.priority))
    evictions, last = _evictions(needs, full, situation, count - fitting)
    return WhatIf(fitting=fitting, nodes=nodes, copies=room_for, evictions=evictions, verdict=last)


def place(found: WhatIf, needs: Needs, room: Room, *, key: str) -> None:
    """Let the pods of a forecast take their places in `room`: each on the first node that it fits on.

    They have the highest priority, so that no other pod of the forecasts preempts them. `key` begins their UIDs.
    """
    rest = found.fitting
    for node, number in zip(found.nodes, found.copies, strict=True):
        if bound := min(rest, number):
            room.bind(node, f"{key}{node}", taken_by(needs, bound, _HIGHEST))
            rest -= bound
    for index, eviction in enumerate(found.evictions):
        room.evict(eviction)
        room.bind(eviction.node, f"{key}{index} evicting", taken_by(needs, 1, _HIGHEST))


def fitting_on(needs: Needs, room: Room) -> dict[str, int]:
    """How many of the pods fit on each node on which one does, without a preemption."""
    nodes = (node for group in candidates_for(needs, room).accepting for node in group.nodes.values())
    found = {node.name: copies(needs.amounts, available_on(node, needs, may_preempt=False)) for node in nodes}
    return {name: number for name, number in found.items() if number}


def _evictions(
    needs: Needs, room: Room, situation: Situation, count: int
) -> tuple[tuple[Eviction, ...], Verdict | None]:
    """The preemptions for `count` pods in `room`, which they change; and the verdict on the first without a place."""
    found: list[Eviction] = []
    while len(found) < count:
        eviction = would_evict(needs, room) if len(found) < MAX_EVICTIONS else None
        if eviction is None:
            return tuple(found), judged(needs, room, situation)
        found.append(eviction)
        room.evict(eviction)
        room.bind(eviction.node, f"{TRIED}evicting {len(found)}", taken_by(needs, 1, needs.priority))
    return tuple(found), None


def seat(needs: Needs, room: Room, count: int, *, key: str) -> int:
    """Bind up to `count` equal pods: where they fit, else by preemption. Returns how many have a place.

    Nodes with the most free GPUs come first; the scheduler may take others of those that fit. `key` begins their UIDs.
    """
    placed = 0
    free = list(with_enough(needs, candidates_for(needs, room).accepting, may_preempt=False))
    for node in free:
        if placed == count:
            break
        number = min(copies(needs.amounts, available_on(node, needs, may_preempt=False)), count - placed)
        if number:
            room.bind(node.name, f"{key}{node.name}", taken_by(needs, number, needs.priority))
            placed += number
    for index in range(min(count - placed, MOST_EVICTIONS)):
        eviction = would_evict(needs, room)
        if eviction is None:
            break
        room.evict(eviction)
        room.bind(eviction.node, f"{key}{index} evicting", taken_by(needs, 1, needs.priority))
        placed += 1
    return placed


def seat_nominated(needs: Needs, room: Room, uid: str, name: str, *, key: str) -> bool:
    """Bind the pod `uid` where room is made for it, if the room is enough; its nomination ends in any case."""
    node = room.nodes.get(name)
    if node is None or node.place is None or exclusions(needs, node.place):
        room.withdraw(name, uid)
        return False
    is_free = fits(needs.amounts, available_on(node, needs, uid, may_preempt=False))
    eviction = None if is_free else would_evict(needs, room.only(node), uid=uid)
    room.withdraw(name, uid)
    if eviction:
        room.evict(eviction)
    if is_free or eviction:
        room.bind(name, f"{key}nominated {uid}", taken_by(needs, 1, needs.priority))
    return is_free or eviction is not None


def taken_by(needs: Needs, number: int, priority: int) -> Taken:
    """What so many equal pods take, as if they were one."""
    return Taken(tuple([(resource, amount * number) for resource, amount in needs.amounts]), priority)
