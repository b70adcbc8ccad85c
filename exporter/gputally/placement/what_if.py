"""What would happen to pods that do not exist yet."""

from typing import Final

from gputally.model.placement.advice import WhatIf
from gputally.model.placement.needs import Needs
from gputally.model.placement.situation import Situation
from gputally.model.placement.verdict import Eviction, Reason, Verdict
from gputally.placement.candidates import available_on, candidates_for
from gputally.placement.eviction import would_evict
from gputally.placement.fit import copies
from gputally.placement.judge import NOWHERE, judged
from gputally.placement.planning.planned import TRIED
from gputally.placement.planning.seating import taken_by
from gputally.placement.room import Room

MAX_EVICTIONS: Final = 256
"""Each of them compares many nodes."""
_HIGHEST: Final = 2**31 - 1


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


_BINDING: Final = (Reason.SCHEDULABLE, Reason.PREEMPTING, Reason.VICTIMS_STOPPING)
