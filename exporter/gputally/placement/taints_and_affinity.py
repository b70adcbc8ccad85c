"""Whether a node accepts a pod, as far as taints, cordons, selectors and affinity decide.

Sources: kubernetes pkg/scheduler/framework/plugins/{tainttoleration,nodeunschedulable,nodeaffinity};
k8s.io/component-helpers scheduling/corev1/{helpers.go,nodeaffinity/nodeaffinity.go}; k8s.io/api core/v1/toleration.go.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from weakref import WeakKeyDictionary

from gputally.model.kube.pods import LabelRequirement, NodeSelectorTerm, Toleration
from gputally.model.needs import Needs, Place, Taint
from gputally.model.verdicts import Obstacle, ObstacleKind
from gputally.placement.node_group import HOSTNAME

UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""Pods that tolerate it run on cordoned nodes."""
NO_REQUIREMENT: Final = "an empty affinity term, which matches no node"
_EFFECTS: Final = ("NoSchedule", "NoExecute")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_keys: Final[WeakKeyDictionary[Needs, tuple[str, ...]]] = WeakKeyDictionary()
_names: Final[WeakKeyDictionary[Needs, tuple[str, ...] | None]] = WeakKeyDictionary()
"""What was asked about needs for as long as they exist."""


def exclusions(needs: Needs, place: Place) -> tuple[Obstacle, ...]:
    """What keeps the pod away from the node, whatever runs there; without the node's name."""
    return (*_taints(needs, place), *_selectors(needs, place))


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of `tolerations` matches the taint."""
    return any(_matches(each, taint) for each in tolerations)


def keys_of(needs: Needs) -> tuple[str, ...]:
    """The label keys by which the pod selects nodes."""
    if (found := _keys.get(needs)) is None:
        keys = {key for key, _ in needs.node_selector}
        for term in needs.node_terms or ():
            keys |= {each.key for each in term.match_expressions or ()}
        found = _keys[needs] = tuple(sorted(keys))
    return found


def named_by(needs: Needs) -> tuple[str, ...] | None:
    """The names by which the pod selects nodes or avoids them; None if its rules compare the names of all nodes."""
    if needs not in _names:
        _names[needs] = _named(needs)
    return _names[needs]


def _named(needs: Needs) -> tuple[str, ...] | None:
    found = {value: None for key, value in needs.node_selector if key == HOSTNAME}
    for term in needs.node_terms or ():
        by_host = (each for each in term.match_expressions or () if each.key == HOSTNAME)
        for each in (*by_host, *(term.match_fields or ())):
            if each.operator in ("Gt", "Lt"):
                return None
            found |= dict.fromkeys(each.values or ())
    return tuple(found)


def describe(requirement: LabelRequirement) -> str:
    """The requirement as `kubectl` writes selectors."""
    key, values = requirement.key, ", ".join(requirement.values or ())
    match requirement.operator:
        case "In" | "NotIn":
            return f"{key} {requirement.operator.lower()} ({values})"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case "Gt" | "Lt":
            return f"{key} {'>' if requirement.operator == 'Gt' else '<'} {values}"
    return f"{key} {requirement.operator} ({values})"


def failing(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The requirements of the term that the node does not meet."""
    if not term.match_expressions and not term.match_fields:
        return (NO_REQUIREMENT,)
    found = [describe(each) for each in term.match_expressions or () if not _holds(each, labels)]
    fields = {"metadata.name": name}
    found += [describe(each) for each in term.match_fields or () if not _holds(each, fields)]
    return tuple(dict.fromkeys(found))


def _taints(needs: Needs, place: Place) -> Iterator[Obstacle]:
    if place.is_cordoned and not tolerates(needs.tolerations, UNSCHEDULABLE):
        yield Obstacle(kind=ObstacleKind.CORDON, what=UNSCHEDULABLE.key)
    for taint in dict.fromkeys(place.taints):
        if taint.effect in _EFFECTS and not tolerates(needs.tolerations, taint):
            if taint == UNSCHEDULABLE and place.is_cordoned:
                continue  # the node controller adds it to cordoned nodes, and removes it again
            yield Obstacle(kind=ObstacleKind.TAINT, what=str(taint))


def _selectors(needs: Needs, place: Place) -> Iterator[Obstacle]:
    if not needs.node_selector and needs.node_terms is None:
        return
    labels = dict(place.labels)
    found = [f"{key}={value}" for key, value in needs.node_selector if labels.get(key) != value]
    if needs.node_terms is not None:
        found += _of_terms(needs.node_terms, labels, place.name)
    for what in dict.fromkeys(found):
        yield Obstacle(kind=ObstacleKind.SELECTOR, what=what)


def _of_terms(terms: Iterable[NodeSelectorTerm], labels: Mapping[str, str], name: str) -> tuple[str, ...]:
    """What fails of the term that is closest to a match."""
    return min((failing(term, labels, name) for term in terms), key=len, default=(NO_REQUIREMENT,))


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
    return False


def _holds(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
    """Whether the labels meet the requirement; unknown operators and broken numbers match nothing."""
    value, values = labels.get(requirement.key), requirement.values or ()
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement.operator, value, values)
    return False


def _compares(operator: str, value: str | None, values: tuple[str, ...]) -> bool:
    have, want = _number(value), _number(values[0] if len(values) == 1 else None)
    if have is None or want is None:
        return False
    return have > want if operator == "Gt" else have < want


def _number(text: str | None) -> int | None:
    """A 64-bit integer, as Go's strconv.ParseInt reads it."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
