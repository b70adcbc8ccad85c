"""What would happen to pods that do not exist yet."""

from collections.abc import Collection
from typing import Final

from gputally.model.placement.advice import WhatIf
from gputally.model.placement.needs import Needs, Taken
from gputally.model.placement.situation import Situation
from gputally.model.placement.verdict import Eviction, Reason, Verdict
from gputally.placement.candidates import available_on, candidates_for
from gputally.placement.eviction import would_evict
from gputally.placement.fit import copies
from gputally.placement.judge import NOWHERE, judged
from gputally.placement.room import Room

MAX_EVICTIONS: Final = 256
"""Each of them compares many nodes."""


def what_if(
    needs: Needs,
    room: Room,
    situation: Situation = NOWHERE,
    *,
    count: int = 1,
    protected: Collection[str] = (),
) -> WhatIf:
    """What would happen to `count` identical pods that are created now, one after the other.

    As long as they fit, the scheduler preempts nobody for them; after MAX_EVICTIONS, the verdict is `preempting`.
    `situation` says what else concerns them, such as a quota; `protected` as in `would_evict`.
    """
    verdict = judged(needs, room, situation)
    if verdict.reason not in _BINDING:
        return WhatIf(fitting=0, verdict=verdict)
    by_node = _fitting(needs, room)
    fitting = min(sum(by_node.values()), count)
    nodes = tuple(sorted(by_node))
    if fitting == count:
        return WhatIf(fitting=fitting, nodes=nodes)
    full = room.copy()
    for name, number in by_node.items():
        for index in range(number):
            full.bind(name, f"what-if {name} {index}", _taken(needs))
    evictions, last = _evictions(needs, full, situation, count - fitting, protected)
    return WhatIf(fitting=fitting, nodes=nodes, evictions=evictions, verdict=last)


def _fitting(needs: Needs, room: Room) -> dict[str, int]:
    """How many of the pods fit on each node on which one does."""
    nodes = (node for group in candidates_for(needs, room).accepting for node in group.nodes.values())
    found = {node.name: copies(needs.amounts, available_on(node, needs, may_preempt=False)) for node in nodes}
    return {name: number for name, number in found.items() if number}


def _evictions(
    needs: Needs, room: Room, situation: Situation, count: int, protected: Collection[str]
) -> tuple[tuple[Eviction, ...], Verdict | None]:
    """The preemptions for `count` pods in `room`, which they change; and the verdict on the first without a place."""
    found: list[Eviction] = []
    while len(found) < count:
        eviction = would_evict(needs, room, protected=protected) if len(found) < MAX_EVICTIONS else None
        if eviction is None:
            return tuple(found), judged(needs, room, situation)
        found.append(eviction)
        for uid in eviction.victims:
            room.release(eviction.node, uid)
        room.bind(eviction.node, f"what-if {len(found)}", _taken(needs))
    return tuple(found), None


def _taken(needs: Needs) -> Taken:
    return Taken(needs.amounts, needs.priority)


_BINDING: Final = (Reason.SCHEDULABLE, Reason.PREEMPTING, Reason.VICTIMS_STOPPING)
