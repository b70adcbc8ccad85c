"""Selects preemption victims, as pure functions.

Source: kube-scheduler framework/plugins/defaultpreemption (SelectVictimsOnNode, PodEligibleToPreemptOthers) and
framework/preemption (pickOneNodeForPreemption, filterPodsWithPDBViolation).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gputally_sim.control.fit import Misfit, NodeState, PodNeeds, misfit
from gputally_sim.documents import Doc, matches
from gputally_sim.instants import parse_instant

_NOT_HELPFUL = Misfit(("Preemption is not helpful for scheduling",))
_NO_VICTIMS = Misfit(("No preemption victims found for incoming pod",))
_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True)
class Candidate:
    """A node that fits the pod after the removal of `victims`, which are ordered by descending importance."""

    node: NodeState
    victims: tuple[PodNeeds, ...]
    violations: int
    """Number of victims that violate a PodDisruptionBudget."""


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget with its number of currently allowed disruptions."""

    namespace: str
    selector: Mapping[str, str]
    allowed: int


def budget_of(doc: Doc) -> Budget:
    """Parse a PodDisruptionBudget."""
    return Budget(
        namespace=doc["metadata"]["namespace"],
        selector=doc["spec"].get("selector", {}).get("matchLabels") or {},
        allowed=doc.get("status", {}).get("disruptionsAllowed", 0),
    )


def ineligible(pod: PodNeeds, nodes: Mapping[str, NodeState]) -> str:
    """Why the pod may not preempt; "" if it may."""
    if pod.spec.get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    nominated = nodes.get(pod.nominated_node)
    on_node = nominated.pods.values() if nominated else ()
    if any(each.terminating and each.preempted and each.priority < pod.priority for each in on_node):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def candidate_on(pod: PodNeeds, node: NodeState, budgets: Sequence[Budget]) -> Candidate | Misfit:
    """The candidate with the fewest and least important victims on the node, or why there is none."""
    objection = misfit(pod, node)
    if objection is not None and not objection.resolvable:
        return _NOT_HELPFUL
    lower = by_importance(each for each in node.pods.values() if each.priority < pod.priority)
    if not lower:
        return _NO_VICTIMS
    removed = {each.uid for each in lower}
    if still := misfit(pod, node, without=removed):
        return still
    violating, others = _split_by_budget(lower, budgets)
    for each in (*violating, *others):  # reprieve pods with a violated budget first
        if misfit(pod, node, without=removed - {each.uid}) is None:
            removed.discard(each.uid)
    victims = tuple(each for each in lower if each.uid in removed)
    return Candidate(node, victims, violations=sum(each.uid in removed for each in violating))


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate with the least damage; the first of equals."""
    return min(candidates, key=_damage)


def by_importance(pods: Iterable[PodNeeds]) -> list[PodNeeds]:
    """Sort by descending priority, then by start time."""
    return sorted(pods, key=lambda pod: (-pod.priority, pod.started, pod.created))


def _damage(candidate: Candidate) -> tuple[int, int, int, int, int]:
    priorities = [victim.priority for victim in candidate.victims]
    highest = max(priorities)
    earliest = min(victim.started for victim in candidate.victims if victim.priority == highest)
    # shift each summand, so that a sum of many negative priorities is not smaller than one of few
    shifted = sum(priority + _MAX_INT32 + 1 for priority in priorities)
    return candidate.violations, highest, shifted, len(priorities), -parse_instant(earliest)


def _split_by_budget(pods: Sequence[PodNeeds], budgets: Sequence[Budget]) -> tuple[list[PodNeeds], list[PodNeeds]]:
    """Split pods into those that violate a budget and the others; each pod consumes its budgets."""
    left = [budget.allowed for budget in budgets]
    violating: list[PodNeeds] = []
    others: list[PodNeeds] = []
    for pod in pods:
        covering = [i for i, budget in enumerate(budgets) if _covers(budget, pod)]
        for i in covering:
            left[i] -= 1
        (violating if any(left[i] < 0 for i in covering) else others).append(pod)
    return violating, others


def _covers(budget: Budget, pod: PodNeeds) -> bool:
    same_namespace = budget.namespace == pod.key[0]
    return same_namespace and bool(budget.selector) and matches(budget.selector, pod.labels)
