"""The pods that kube-scheduler would preempt for another one.

Source: kubernetes pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, SelectVictimsOnNode;
pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import structs

from gputally.model.needs import Needs
from gputally.model.verdicts import Eviction
from gputally.placement.candidates import available_on, candidates_for, with_enough
from gputally.placement.disruption_budgets import Budgets
from gputally.placement.fit import by_importance, fits, must_go, start_of
from gputally.placement.node_room import NodeRoom
from gputally.placement.room import Room

COMPARED: Final = 100
"""The scheduler compares a random tenth of the nodes, at least so many, and more until one has no pod that a budget
protects."""
_MOST_COMPARED: Final = 1000
_OFFSET: Final = 2**31
"""Added to each priority in a sum, so that fewer victims have a smaller one."""


def would_evict(needs: Needs, room: Room, *, uid: str = "") -> Eviction | None:
    """The node and the victims that the default preemption chooses; None if there are none, or if it may not preempt.

    It prefers victims whose disruption their budgets allow (`Room.budgets`), and preempts others if it must. `uid` as
    in `Situation`. In a cluster with more than COMPARED possible nodes, the scheduler may choose another one.
    """
    if not needs.may_preempt:
        return None
    compared: list[tuple[NodeRoom, Eviction]] = []
    is_allowed = False
    for node in islice(_possible(needs, room, uid), _MOST_COMPARED):
        if len(compared) >= COMPARED and is_allowed:
            break
        eviction = _victims(node, needs, room.budgets, uid)
        compared.append((node, eviction))
        is_allowed = is_allowed or not eviction.violating
    return min(compared, key=lambda pair: (_preference(*pair), pair[0].name), default=(None, None))[1]


def allowed(needs: Needs) -> Needs:
    """The needs with a policy that permits preemption."""
    return needs if needs.may_preempt else structs.replace(needs, may_preempt=True)


def _possible(needs: Needs, room: Room, uid: str) -> Iterator[NodeRoom]:
    """The nodes where the pod fits without the pods of lower priority."""
    accepting = candidates_for(needs, room).accepting
    for group in accepting:
        own = [node for node in group.nodes.values() if uid in node.nominated] if uid else []
        for node in (*own, *with_enough(needs, [group], may_preempt=True)):
            if fits(needs.amounts, available_on(node, needs, uid)):
                yield node


def _victims(node: NodeRoom, needs: Needs, budgets: Budgets, uid: str) -> Eviction:
    key = ("victims", needs.amounts, needs.priority)
    is_plain = not (uid and uid in node.nominated)
    if is_plain and isinstance(known := node.memo.get(key), Eviction):
        return known
    lower = by_importance([pod for pod in node.taken.items() if pod[1].priority < needs.priority])
    violated = budgets.violated(lower)
    first = [pod for pod in lower if pod[0] in violated]
    order = (*first, *(pod for pod in lower if pod[0] not in violated))
    going = set(must_go(needs.amounts, available_on(node, needs, uid), order))
    found = Eviction(
        node=node.name,
        victims=tuple([each for each, _ in lower if each in going]),
        violating=tuple([(each, violated[each]) for each, _ in first if each in going]),
    )
    if is_plain and not budgets.select(lower):  # what they allow changes without the node
        node.memo[key] = found
    return found


def _preference(node: NodeRoom, eviction: Eviction) -> tuple[float, ...]:
    """The smallest is preferred. Nodes that are equal have no order in the scheduler."""
    victims = [node.taken[uid] for uid in eviction.victims]
    highest = max((each.priority for each in victims), default=-_OFFSET)
    first = min((start_of(each) for each in victims if each.priority == highest), default=0)
    return (
        len(eviction.violating),
        highest,
        sum(each.priority + _OFFSET for each in victims),
        len(victims),
        -first,
    )
