"""Whom kube-scheduler would preempt.

Source: kubernetes pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, SelectVictimsOnNode;
pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption.
"""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from msgspec import structs

from gputally.model.placement.needs import Needs
from gputally.model.placement.verdict import Eviction
from gputally.placement.candidates import available_on, candidates_for, with_enough
from gputally.placement.fit import by_importance, fits, must_go, start_of
from gputally.placement.node_room import NodeRoom
from gputally.placement.room import Room

COMPARED: Final = 100
"""Of more nodes, the scheduler compares a random sample of a tenth, at least so many."""
_OFFSET: Final = 2**31
"""Added to each priority in a sum, so that fewer victims have a smaller one."""


def would_evict(needs: Needs, room: Room, *, protected: Collection[str] = (), uid: str = "") -> Eviction | None:
    """The node and the victims that the default preemption chooses; None if there are none, or if it may not preempt.

    `protected` are the UIDs of pods whose disruption their budgets do not allow. `uid` as in `Situation`. In a cluster
    with more than COMPARED possible nodes, the scheduler may choose another one.
    """
    if not needs.may_preempt:
        return None
    found = islice(_possible(needs, room, uid), COMPARED)
    evictions = ((node, _victims(node, needs, protected, uid)) for node in found)
    return min(evictions, key=lambda pair: (_preference(*pair), pair[0].name), default=(None, None))[1]


def allowed(needs: Needs) -> Needs:
    """The same with a policy that permits preemption."""
    return needs if needs.may_preempt else structs.replace(needs, may_preempt=True)


def _possible(needs: Needs, room: Room, uid: str) -> Iterator[NodeRoom]:
    """The nodes where the pod fits without the pods of lower priority."""
    accepting = candidates_for(needs, room).accepting
    for group in accepting:
        own = [node for node in group.nodes.values() if uid in node.nominated] if uid else []
        for node in (*own, *with_enough(needs, [group], may_preempt=True)):
            if fits(needs.amounts, available_on(node, needs, uid)):
                yield node


def _victims(node: NodeRoom, needs: Needs, protected: Collection[str], uid: str) -> Eviction:
    key = ("victims", needs.amounts, needs.priority)
    is_plain = not protected and not (uid and uid in node.nominated)
    if is_plain and isinstance(known := node.memo.get(key), Eviction):
        return known
    lower = by_importance([pod for pod in node.taken.items() if pod[1].priority < needs.priority])
    first = [pod for pod in lower if pod[0] in protected]
    order = (*first, *(pod for pod in lower if pod[0] not in protected))
    going = set(must_go(needs.amounts, available_on(node, needs, uid), order))
    found = Eviction(
        node=node.name,
        victims=tuple([each for each, _ in lower if each in going]),
        violations=sum(each in going for each, _ in first),
    )
    if is_plain:
        node.memo[key] = found
    return found


def _preference(node: NodeRoom, eviction: Eviction) -> tuple[float, ...]:
    """The smallest is preferred. Nodes that are equal have no order in the scheduler."""
    victims = [node.taken[uid] for uid in eviction.victims]
    highest = max((each.priority for each in victims), default=-_OFFSET)
    first = min((start_of(each) for each in victims if each.priority == highest), default=0)
    return (
        eviction.violations,
        highest,
        sum(each.priority + _OFFSET for each in victims),
        len(victims),
        -first,
    )
