"""What a change would do to a waiting pod, its circumstances and the nodes."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from msgspec import structs

from gputally.model.objects.affinity import NodeSelectorTerm
from gputally.model.objects.toleration import Toleration
from gputally.model.placement.advice import ChangeKind, PriorityChoice, SuggestedChange
from gputally.model.placement.needs import Needs, Place
from gputally.model.placement.situation import Situation
from gputally.placement.exclusions import NO_REQUIREMENT, UNSCHEDULABLE, describe
from gputally.placement.node_room import NodeRoom
from gputally.placement.room import Room


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


def _smaller(needs: Needs, change: SuggestedChange) -> Needs:
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
    ChangeKind.REQUEST_LESS: _smaller,
    ChangeKind.PREEMPT: _preempting,
    ChangeKind.REMOVE_GATE: _without_gate,
}
