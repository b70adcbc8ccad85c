"""Which preemptions PodDisruptionBudgets do not allow, as kube-scheduler counts them.

Source: kubernetes pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, filterPodsWithPDBViolation.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from gputally.model.kube.meta import Selector, selects
from gputally.placement.fit import Pods

MOST_COMPARED: Final = 200_000
"""Comparisons of a budget with a pod; anyone may create budgets, and each comparison takes some microseconds."""
LabelsOf = Callable[[str], Mapping[str, str] | None]
"""The labels of the pod with a UID, None if they are not known."""


class PodBudget(Struct, frozen=True, kw_only=True, gc=False):
    """A PodDisruptionBudget with the disruptions that its status allows; of one that `is_unread` nothing is known."""

    namespace: str
    name: str
    selector: Selector | None
    allowed: int
    is_unread: bool = False

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def unread_budget(namespace: str) -> PodBudget:
    """Stands for the budgets of a namespace that are not known."""
    return PodBudget(namespace=namespace, name="", selector=None, allowed=0, is_unread=True)


class Budgets:
    """The budgets of a cluster. `namespace_of` and `labels_of` are asked about pods by UID.

    It `is_partial` if it was asked about pods whose labels or budgets are not all known, or about too many.
    """

    def __init__(self, budgets: Iterable[PodBudget], namespace_of: Callable[[str], str], labels_of: LabelsOf) -> None:
        self.is_partial = False
        self._namespace_of = namespace_of
        self._labels_of = labels_of
        self._in_namespace: dict[str, list[PodBudget]] = {}
        self._allowed: dict[str, int] = {}
        self._of: dict[str, tuple[str, ...]] = {}
        """The titles of the budgets that select a pod, by its UID."""
        self._compared = 0
        for each in budgets:
            if each.is_unread or _is_selective(each.selector):
                self._in_namespace.setdefault(each.namespace, []).append(each)
                self._allowed[each.title] = each.allowed

    def violated(self, pods: Pods) -> dict[str, str]:
        """The pods that a budget does not allow to go, with its title; `pods` are in order, the most important first.

        The budgets allow the disruption of the first ones.
        """
        found: dict[str, str] = {}
        if not self._allowed:
            return found
        left: dict[str, int] = {}
        for uid, _ in pods:
            for title in self._selecting(uid):
                left[title] = left.get(title, self._allowed[title]) - 1
                if left[title] < 0:
                    found.setdefault(uid, title)
        return found

    def select(self, pods: Pods) -> bool:
        """Whether a budget selects any of the pods."""
        return bool(self._allowed) and any(self._selecting(uid) for uid, _ in pods)

    def disrupt(self, uid: str) -> None:
        """The pod is preempted: its budgets allow one disruption less, as soon as their controller has noticed."""
        for title in self._selecting(uid) if self._allowed else ():
            self._allowed[title] = max(0, self._allowed[title] - 1)

    def copy(self) -> "Budgets":
        """An independent copy."""
        found = Budgets((), self._namespace_of, self._labels_of)
        found._in_namespace, found._of = self._in_namespace, self._of
        found._allowed, found._compared = dict(self._allowed), self._compared
        found.is_partial = self.is_partial
        return found

    def _selecting(self, uid: str) -> tuple[str, ...]:
        if (known := self._of.get(uid)) is None:
            known = self._of[uid] = tuple(each.title for each in self._compare(uid))
        return known

    def _compare(self, uid: str) -> list[PodBudget]:
        budgets = self._in_namespace.get(self._namespace_of(uid), [])
        if not budgets:
            return []
        self._compared += len(budgets)
        self.is_partial |= any(each.is_unread for each in budgets)
        labels = self._labels_of(uid) if self._compared <= MOST_COMPARED else None
        if labels is None:
            self.is_partial = True
            return []
        return [each for each in budgets if selects(each.selector, labels)] if labels else []


NO_BUDGETS: Final = Budgets((), lambda _: "", lambda _: None)


def _is_selective(selector: Selector | None) -> bool:
    """Whether it has any requirement: unlike the Eviction API, the scheduler takes an empty one to select nothing."""
    return selector is not None and bool(selector.match_labels or selector.match_expressions)
