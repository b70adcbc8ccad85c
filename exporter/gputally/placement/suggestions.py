"""What would help a waiting pod: changes to it, its circumstances or the nodes, each judged again."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from gputally.model.advice import ChangeKind, PriorityChoice, SuggestedChange, Suggestion
from gputally.model.kube.pods import NodeSelectorTerm, Toleration
from gputally.model.needs import Needs, Place, Situation
from gputally.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY
from gputally.model.verdicts import Obstacle, ObstacleKind, Reason, Verdict
from gputally.placement.eviction import would_evict
from gputally.placement.node_room import NodeRoom
from gputally.placement.room import Room
from gputally.placement.taints_and_affinity import NO_REQUIREMENT, UNSCHEDULABLE, describe, named_by
from gputally.placement.verdicts import judged
from gputally.placement.what_if import fitting_on

_BOUND: Final = (Reason.SCHEDULABLE, Reason.PREEMPTING)
_STEPS: Final = {CPU: 100, MEMORY: 2**20, EPHEMERAL_STORAGE: 2**20}
"""Smaller requests are searched in these steps; GPUs one by one."""
_MAX_CLASSES: Final = 64
_BY_PRIORITY: Final = (Reason.NEVER_PREEMPTS, Reason.INVERSION, Reason.FRAGMENTED, Reason.CAPACITY)
_WITH_PRIORITY: Final = (*_BY_PRIORITY, Reason.OTHER_RESOURCE)
_COSTS: Final = {ChangeKind.WAIT: 1, ChangeKind.ADD_NODE: 2, ChangeKind.REQUEST_LESS: 3}
"""The order of changes that evict nobody; all others come first."""
_LAST: Final = 5
_AMOUNTS: Final = (ObstacleKind.SIZE, ObstacleKind.RESOURCE)


class Attempt(NamedTuple):
    """A waiting pod, where it could run, and its circumstances."""

    needs: Needs
    room: Room
    situation: Situation


def changed(state: Attempt, change: SuggestedChange, classes: Mapping[str, PriorityChoice]) -> Attempt:
    """The state after the change; `classes` are the PriorityClasses by name.

    After a change of a node, or with a new one, only that node is left: the pod fits on none of the others, which did
    not change.
    """
    needs, room, situation = state
    if change.kind in _ON_NODE:
        node = room.nodes[change.node].copy()
        _ON_NODE[change.kind](node, change)
        return Attempt(needs, room.only(node), situation)
    if change.kind is ChangeKind.RAISE_QUOTA:
        return Attempt(needs, room, structs.replace(situation, quota=None))
    if change.kind is ChangeKind.USE_CLASS:
        return Attempt(_with_class(needs, classes[change.what]), room, situation)
    return Attempt(_ON_POD[change.kind](needs, change), room, situation)


def _without_taint(node: NodeRoom, change: SuggestedChange) -> None:
    place = _place(node)
    taints = tuple([taint for taint in place.taints if str(taint) != change.what])
    node.replace(structs.replace(place, taints=taints))


def _uncordoned(node: NodeRoom, _: SuggestedChange) -> None:
    place = _place(node)
    taints = tuple([taint for taint in place.taints if taint != UNSCHEDULABLE])
    node.replace(structs.replace(place, is_cordoned=False, taints=taints))


def _emptied(node: NodeRoom, change: SuggestedChange) -> None:
    for uid in change.pods:
        node.drop(uid)
        node.nominated.pop(uid, None)
    node.forget()


def _empty(node: NodeRoom, _: SuggestedChange) -> None:
    for uid in tuple(node.taken):
        node.drop(uid)
    node.nominated.clear()
    node.forget()


def _place(node: NodeRoom) -> Place:
    assert node.place is not None
    return node.place


def _tolerating(needs: Needs, change: SuggestedChange) -> Needs:
    key, _, effect = change.what.rpartition(":")
    key, _, value = key.partition("=")
    toleration = Toleration(key=key, operator="Equal" if value else "Exists", value=value, effect=effect)
    return structs.replace(needs, tolerations=(*needs.tolerations, toleration))


def _unselective(needs: Needs, change: SuggestedChange) -> Needs:
    selector = tuple([pair for pair in needs.node_selector if "=".join(pair) != change.what])
    terms = needs.node_terms
    if change.what == NO_REQUIREMENT:
        terms = None
    elif terms is not None:
        reduced = [_reduced(term, change.what) for term in terms]
        # A term without requirements matches no node; one that has lost its last requirement was to match all.
        lost_all = any(new != old and not _requirements(new) for new, old in zip(reduced, terms, strict=True))
        terms = None if lost_all else tuple(reduced)
    return structs.replace(needs, node_selector=selector, node_terms=terms)


def _reduced(term: NodeSelectorTerm, what: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=tuple([each for each in term.match_expressions or () if describe(each) != what]),
        match_fields=tuple([each for each in term.match_fields or () if describe(each) != what]),
    )


def _requirements(term: NodeSelectorTerm) -> int:
    return len(term.match_expressions or ()) + len(term.match_fields or ())


def _requesting_less(needs: Needs, change: SuggestedChange) -> Needs:
    amounts = dict(needs.amounts) | {change.what: change.amount or 0}
    return structs.replace(needs, amounts=tuple(sorted((name, amount) for name, amount in amounts.items() if amount)))


def _preempting(needs: Needs, _: SuggestedChange) -> Needs:
    return structs.replace(needs, may_preempt=True)


def _with_class(needs: Needs, choice: PriorityChoice) -> Needs:
    return structs.replace(needs, class_name=choice.name, priority=choice.value, may_preempt=choice.may_preempt)


def _without_gate(needs: Needs, change: SuggestedChange) -> Needs:
    return structs.replace(needs, gates=tuple([gate for gate in needs.gates if gate != change.what]))


_ON_NODE: Final[Mapping[ChangeKind, Callable[[NodeRoom, SuggestedChange], None]]] = {
    ChangeKind.REMOVE_TAINT: _without_taint,
    ChangeKind.UNCORDON: _uncordoned,
    ChangeKind.WAIT: _emptied,
    ChangeKind.ADD_NODE: _empty,
}
_ON_POD: Final[Mapping[ChangeKind, Callable[[Needs, SuggestedChange], Needs]]] = {
    ChangeKind.TOLERATE: _tolerating,
    ChangeKind.DROP_SELECTOR: _unselective,
    ChangeKind.REQUEST_LESS: _requesting_less,
    ChangeKind.PREEMPT: _preempting,
    ChangeKind.REMOVE_GATE: _without_gate,
}


def suggestions(
    verdict: Verdict,
    needs: Needs,
    room: Room,
    situation: Situation,
    *,
    classes: Sequence[PriorityChoice] = (),
    count: int = 1,
) -> tuple[Suggestion, ...]:
    """Changes that lead to a binding, each judged again by the same model; those that cost others least come first.

    `classes` are the PriorityClasses that the pod could use. `count` pods that are alike wait.
    """
    state, by_name = Attempt(needs, room, situation), {each.name: each for each in classes}
    single = [(change,) for change in _single(verdict, state, classes)]
    all_at_once = _all_at_once(verdict, state)
    several = [all_at_once] if len(all_at_once) > 1 else []
    tried = (_tried(state, changes, by_name, count=count) for changes in (*single, *several))
    return tuple(sorted((each for each in tried if each), key=_cost_to_others))


def _cost_to_others(suggestion: Suggestion) -> int:
    """Another class is the last resort: if everybody takes one, classes order nothing any more."""
    kinds = {each.kind for each in suggestion.changes}
    if ChangeKind.USE_CLASS in kinds:
        return _LAST
    if suggestion.eviction:
        return _LAST - 1
    return max(_COSTS.get(kind, 0) for kind in kinds)


def _tried(
    state: Attempt, changes: tuple[SuggestedChange, ...], classes: Mapping[str, PriorityChoice], *, count: int = 1
) -> Suggestion | None:
    """The suggestion, if the pod would be bound after the changes, and with how many of `count`."""
    for change in changes:
        state = changed(state, change, classes)
    reason = judged(*state).reason
    if reason not in _BOUND:
        return None
    eviction = would_evict(state.needs, state.room, uid=state.situation.uid) if reason is Reason.PREEMPTING else None
    bound = 1 if eviction or count == 1 else min(count, _bound(state, changes))
    return Suggestion(changes=changes, reason=reason, eviction=eviction, bound=bound)


def _bound(state: Attempt, changes: Iterable[SuggestedChange]) -> int:
    """How many such pods fit after the changes, of which one does."""
    if any(each.kind is ChangeKind.RAISE_QUOTA for each in changes):
        return 1  # the quota is raised for one pod only
    if gang := state.situation.gang:
        return max(1, gang.least - gang.bound)
    return sum(fitting_on(state.needs, state.room).values())


def _single(verdict: Verdict, state: Attempt, classes: Sequence[PriorityChoice]) -> Iterator[SuggestedChange]:
    """Changes that may help alone."""
    for obstacle in verdict.obstacles:
        yield from _of_pod(obstacle)
    if verdict.reason in _WITH_PRIORITY:
        yield from _lowest_class(state, classes)
        yield from _another_node(verdict, state)
    for what in dict.fromkeys(each.what for each in verdict.obstacles if each.kind in _AMOUNTS):
        yield from _smaller(state, what)
    for obstacle in verdict.obstacles:
        yield from _of_cluster(obstacle, state.room)


def _another_node(verdict: Verdict, state: Attempt) -> Iterator[SuggestedChange]:
    """Another node like the one that comes closest; none for a pod that selects nodes by name, as it has another."""
    if verdict.node in state.room.nodes and named_by(state.needs) == ():
        yield SuggestedChange(kind=ChangeKind.ADD_NODE, node=verdict.node)


def _all_at_once(verdict: Verdict, state: Attempt) -> tuple[SuggestedChange, ...]:
    """One change for each obstacle; where pods would have to end that do not end by themselves, another node."""
    found = tuple(_remedies(verdict, state.room))
    kinds = {each.kind for each in verdict.obstacles}
    if len(found) == len(verdict.obstacles) or ObstacleKind.RESOURCE not in kinds or ObstacleKind.CORDON in kinds:
        return found
    return (*(each for each in found if each.kind is not ChangeKind.WAIT), *_another_node(verdict, state))


def _remedies(verdict: Verdict, room: Room) -> Iterator[SuggestedChange]:
    """One change for each obstacle that one is known for, the pod's own where there is one."""
    for obstacle in verdict.obstacles:
        own = [*_of_pod(obstacle), *_of_cluster(obstacle, room)]
        if obstacle.kind is ObstacleKind.SIZE and obstacle.free:
            own = [SuggestedChange(kind=ChangeKind.REQUEST_LESS, what=obstacle.what, amount=obstacle.free)]
        yield from own[:1]


def _of_pod(obstacle: Obstacle) -> Iterator[SuggestedChange]:
    """What the pod's author can change."""
    match obstacle.kind:
        case ObstacleKind.TAINT:
            yield SuggestedChange(kind=ChangeKind.TOLERATE, what=obstacle.what)
        case ObstacleKind.SELECTOR:
            yield SuggestedChange(kind=ChangeKind.DROP_SELECTOR, what=obstacle.what)
        case ObstacleKind.POLICY:
            yield SuggestedChange(kind=ChangeKind.PREEMPT)
        case ObstacleKind.GATE:
            yield SuggestedChange(kind=ChangeKind.REMOVE_GATE, what=obstacle.what)


def _of_cluster(obstacle: Obstacle, room: Room) -> Iterator[SuggestedChange]:
    """What others can change, or what time does: pods that serve users do not end by themselves."""
    match obstacle.kind:
        case ObstacleKind.TAINT:
            yield SuggestedChange(kind=ChangeKind.REMOVE_TAINT, what=obstacle.what, node=obstacle.node)
        case ObstacleKind.CORDON:
            yield SuggestedChange(kind=ChangeKind.UNCORDON, node=obstacle.node)
        case ObstacleKind.QUOTA:
            missing = (obstacle.needed or 0) - (obstacle.free or 0)
            yield SuggestedChange(kind=ChangeKind.RAISE_QUOTA, what=obstacle.what, amount=missing)
        case ObstacleKind.RESOURCE if not any(room.serves(obstacle.node, uid) for uid in obstacle.pods):
            yield SuggestedChange(
                kind=ChangeKind.WAIT,
                what=obstacle.what,
                node=obstacle.node,
                amount=(obstacle.needed or 0) - (obstacle.free or 0),
                pods=obstacle.pods,
            )


def _lowest_class(state: Attempt, classes: Iterable[PriorityChoice]) -> Iterator[SuggestedChange]:
    """The class of the lowest priority with which the pod would be bound."""
    by_name = {each.name: each for each in classes}
    higher = [each for each in classes if each.value > state.needs.priority or not state.needs.may_preempt]
    for choice in sorted(higher, key=lambda each: (each.value, each.name))[:_MAX_CLASSES]:
        change = SuggestedChange(kind=ChangeKind.USE_CLASS, what=choice.name)
        if _tried(state, (change,), by_name):
            yield change
            return


def _smaller(state: Attempt, resource: str) -> Iterator[SuggestedChange]:
    """The largest request of the resource with which the pod would be bound; a pod keeps some of it."""
    needed, step = dict(state.needs.amounts).get(resource, 0), _STEPS.get(resource, 1)
    least, most = 0, -(-needed // step)  # in steps: `least` is enough, `most` is too much
    while most - least > 1:
        middle = (least + most) // 2
        change = SuggestedChange(kind=ChangeKind.REQUEST_LESS, what=resource, amount=middle * step)
        least, most = (middle, most) if _tried(state, (change,), {}) else (least, middle)
    if least:
        yield SuggestedChange(kind=ChangeKind.REQUEST_LESS, what=resource, amount=least * step)
