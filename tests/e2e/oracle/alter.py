"""Removes obstacles from states, and applies suggestions to them: to manifests, without the code under test."""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Final

from gputally.model.advice import ChangeKind, SuggestedChange
from gputally.model.kube.pods import LabelRequirement
from gputally.model.verdicts import Obstacle, ObstacleKind
from gputally.placement.node_group import HOSTNAME
from tests.cluster.manifests import Json
from tests.e2e.oracle.state import NEVER, State
from tests.naive_scheduler import meets

Names = Mapping[str, str]
"""Names of pods by UID."""
ENOUGH = 1000


def without(state: State, obstacles: Iterable[Obstacle], names: Names) -> State:
    """The state in which these obstacles are gone."""
    state = state.copy()
    for obstacle in obstacles:
        state = REMOVE[obstacle.kind](state, obstacle, names)
    return state


def after(state: State, changes: Iterable[SuggestedChange], names: Names) -> State:
    """The state after the changes of a suggestion."""
    state = state.copy()
    for change in changes:
        state = APPLY[change.kind](state, change, names)
    return state


def untainted(state: State, at: Obstacle | SuggestedChange, _: Names) -> State:
    for each in state.nodes:
        if each["metadata"]["name"] == at.node:
            each["spec"]["taints"] = [taint for taint in each["spec"]["taints"] if written(taint) != at.what]
    return state


def uncordoned(state: State, at: Obstacle | SuggestedChange, _: Names) -> State:
    for each in state.nodes:
        if each["metadata"]["name"] == at.node:
            del each["spec"]["unschedulable"]
    return state


def tolerating(state: State, change: SuggestedChange, _: Names) -> State:
    state.pod["spec"]["tolerations"].append(toleration(change.what))
    return state


def written(taint: Json) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def toleration(what: str) -> Json:
    """Of exactly the taint that is written so."""
    key, _, effect = what.rpartition(":")
    key, has_value, value = key.partition("=")
    same = {"operator": "Equal", "value": value} if has_value else {"operator": "Exists"}
    return {"key": key, "effect": effect} | same


def unselective(state: State, at: Obstacle | SuggestedChange, _: Names) -> State:
    """The pod no longer requires what it names."""
    spec, what = state.pod["spec"], at.what
    spec["nodeSelector"] = {key: value for key, value in spec["nodeSelector"].items() if f"{key}={value}" != what}
    if "affinity" not in spec:
        return state
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    for term in required["nodeSelectorTerms"]:
        term["matchExpressions"] = [each for each in term["matchExpressions"] if requirement(each) != what]
    if not all(term["matchExpressions"] for term in required["nodeSelectorTerms"]):
        del spec["affinity"]  # one of the terms requires nothing any more
    return state


def requirement(expression: Json) -> str:
    key, values = str(expression["key"]), ", ".join(expression.get("values", ()))
    forms = {
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
        "Exists": key,
        "DoesNotExist": f"!{key}",
        "Gt": f"{key} > {values}",
        "Lt": f"{key} < {values}",
    }
    return forms[str(expression["operator"])]


def larger(state: State, obstacle: Obstacle, _: Names) -> State:
    """The node offers what the pod requests; if none offers it at all, there is one more."""
    if not obstacle.node:
        return replace(state, nodes=(*state.nodes, accepting(state)))
    for each in state.nodes:
        if each["metadata"]["name"] == obstacle.node:
            for offer in ("capacity", "allocatable"):
                amount = quantity(obstacle.what, obstacle.needed or 0)
                each["status"][offer] = each["status"][offer] | {obstacle.what: amount}
    return state


def accepting(state: State) -> Json:
    """A node that is large enough for the pod, with the labels and without the taints that this needs."""
    made = deepcopy(state.nodes[0])
    made["metadata"]["name"] = f"{state.name}-more"
    made["spec"] = {"taints": made["spec"]["taints"][:1]}
    labels = dict(state.pod["spec"]["nodeSelector"])
    if affinity := state.pod["spec"].get("affinity"):
        terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        labels |= next(found for term in terms if (found := meeting(term, labels)) is not None)
    made["metadata"]["labels"] = labels
    resources = {"pods": "110"} | state.pod["spec"]["containers"][0]["resources"]["requests"]
    made["status"] |= {"capacity": resources, "allocatable": resources}
    return made


def meeting(term: Json, labels: Json) -> Json | None:
    """Labels that meet the term beside the others; None if there are none."""
    found = dict(labels)
    for each in term["matchExpressions"]:
        values = each.get("values", [""])
        match each["operator"]:
            case "In":
                found.setdefault(each["key"], values[0])
            case "Exists":
                found.setdefault(each["key"], "")
            case "Gt" | "Lt":
                found.setdefault(each["key"], str(int(values[0]) + (1 if each["operator"] == "Gt" else -1)))
    is_met = all(meets(LabelRequirement(**each), found) for each in term["matchExpressions"])
    return found if is_met else None


def quantity(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == "cpu" else str(amount)


def smaller(state: State, change: SuggestedChange, _: Names) -> State:
    return requesting(state, change.what, change.amount or 0)


def requesting(state: State, resource: str, amount: int) -> State:
    resources = state.pod["spec"]["containers"][0]["resources"]
    text = quantity(resource, amount)
    for given in (resources["requests"], resources["limits"]):
        if resource in given:
            given[resource] = text
            if not amount:
                del given[resource]
    return state


def gone(state: State, at: Obstacle | SuggestedChange, names: Names) -> State:
    going = {names[uid] for uid in at.pods}
    return replace(
        state,
        holders=tuple([each for each in state.holders if each["metadata"]["name"] not in going]),
        stopping=state.stopping - going,
    )


def joined(state: State, change: SuggestedChange, _: Names) -> State:
    """An empty node like the one that it names, under another name."""
    [node] = (deepcopy(each) for each in state.nodes if each["metadata"]["name"] == change.node)
    name = node["metadata"]["name"] = f"{change.node}-more"
    if HOSTNAME in node["metadata"].get("labels", {}):
        node["metadata"]["labels"][HOSTNAME] = name
    return replace(state, nodes=(*state.nodes, node))


def preempting(state: State, _: Obstacle | SuggestedChange, __: Names) -> State:
    state.pod["spec"]["priorityClassName"] = state.pod["spec"]["priorityClassName"].removesuffix(NEVER)
    return state


def reclassed(state: State, change: SuggestedChange, _: Names) -> State:
    state.pod["spec"]["priorityClassName"] = change.what
    return state


def ungated(state: State, at: Obstacle | SuggestedChange, _: Names) -> State:
    gates = state.pod["spec"]["schedulingGates"]
    state.pod["spec"]["schedulingGates"] = [each for each in gates if each["name"] != at.what]
    return state


def unlimited(state: State, _: Obstacle, __: Names) -> State:
    return replace(state, quota=ENOUGH)


def with_more_quota(state: State, change: SuggestedChange, _: Names) -> State:
    return replace(state, quota=(state.quota or 0) + (change.amount or 0))


REMOVE: Final[Mapping[ObstacleKind, Callable[[State, Obstacle, Names], State]]] = {
    ObstacleKind.TAINT: untainted,
    ObstacleKind.CORDON: uncordoned,
    ObstacleKind.SELECTOR: unselective,
    ObstacleKind.SIZE: larger,
    ObstacleKind.RESOURCE: gone,
    ObstacleKind.POLICY: preempting,
    ObstacleKind.GATE: ungated,
    ObstacleKind.QUOTA: unlimited,
}
APPLY: Final[Mapping[ChangeKind, Callable[[State, SuggestedChange, Names], State]]] = {
    ChangeKind.TOLERATE: tolerating,
    ChangeKind.REMOVE_TAINT: untainted,
    ChangeKind.UNCORDON: uncordoned,
    ChangeKind.DROP_SELECTOR: unselective,
    ChangeKind.REQUEST_LESS: smaller,
    ChangeKind.PREEMPT: preempting,
    ChangeKind.USE_CLASS: reclassed,
    ChangeKind.WAIT: gone,
    ChangeKind.RAISE_QUOTA: with_more_quota,
    ChangeKind.REMOVE_GATE: ungated,
    ChangeKind.ADD_NODE: joined,
}
