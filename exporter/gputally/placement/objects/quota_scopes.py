"""Which pods a ResourceQuota counts."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from gputally.model.objects.quota_spec import QuotaSpec, ScopeExpression

BY_CLASS: Final = "PriorityClass"
"""The scope that reads the class of a pod."""


class CountedPod(Struct, frozen=True, kw_only=True, gc=False):
    """What scopes read of a pod. A pod is `best_effort` if it neither requests nor limits CPU or memory.

    It is `terminating` if it has an activeDeadlineSeconds.
    """

    class_name: str
    best_effort: bool = False
    terminating: bool = False


def terms_of(spec: QuotaSpec) -> tuple[ScopeExpression, ...]:
    """The requirements of the selector, and the older scopes as such."""
    selector = spec.scope_selector
    expressions = (selector.match_expressions or ()) if selector else ()
    return (*expressions, *(ScopeExpression(scope_name=name, operator="Exists") for name in spec.scopes or ()))


def matches_class(term: ScopeExpression, class_name: str) -> bool:
    """As a label selector on the class name: NotIn and DoesNotExist also match pods without a class."""
    match term.operator:
        case "In":
            return class_name in (term.values or ())
        case "NotIn":
            return class_name not in (term.values or ())
        case "Exists":
            return bool(class_name)
        case _:
            return not class_name


def counts(terms: Iterable[ScopeExpression], pod: CountedPod) -> bool:
    """Whether a quota with these scopes counts the pod; scopes that are not modelled count none.

    Source: k8s.io/kubernetes pkg/quota/v1/evaluator/core/pods.go, podMatchesScopeFunc.
    """
    return all(_matches(each, pod) for each in terms)


def _matches(term: ScopeExpression, pod: CountedPod) -> bool:
    match term.scope_name:
        case "PriorityClass":
            return matches_class(term, pod.class_name)
        case "BestEffort":
            return pod.best_effort
        case "NotBestEffort":
            return not pod.best_effort
        case "Terminating":
            return pod.terminating
        case "NotTerminating":
            return not pod.terminating
    return False
