"""ResourceQuotas of GPUs by namespace and PriorityClass, and their sum against the capacity of the nodes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from gputally.model.kube import Node
from gputally.model.rules import Rules
from gputally.posture.gpu_workloads import namespace_of
from gputally.posture.posture_objects import QuotaObject, ScopeExpression
from gputally.posture.wording import listed
from gputally.shares.request import offered_units, requested
from gputally.shares.schemes import covered, describes, labels_of, rule_of, sharing_of

_REQUESTS: Final = "requests."
"""Quotas of extended resources have this prefix. Source: k8s.io/kubernetes pkg/apis/core/helper/helpers.go."""
_BY_CLASS: Final = "PriorityClass"
NodeLabels = tuple[tuple[str, str], ...]


class ScopedQuota(Struct, frozen=True, kw_only=True):
    """One GPU resource of a ResourceQuota, in devices. `used` is None if it is unknown, as in a manifest.

    `scope` says in words which pods it counts. `invalid` says why its limit cannot be read.
    """

    namespace: str
    name: str
    scope: str
    resource: str
    hard: int
    used: int | None
    terms: tuple[ScopeExpression, ...]
    invalid: str = ""

    @property
    def headroom(self) -> int | None:
        """What may still be requested; below 0 if the limit was lowered since."""
        return None if self.used is None else self.hard - self.used

    @property
    def is_by_class(self) -> bool:
        """Whether the class of a pod decides alone if the quota counts it: other scopes read what no class shows."""
        return not self.invalid and all(each.scope_name == _BY_CLASS for each in self.terms)

    def counts(self, class_name: str) -> bool:
        """Whether it counts pods of the class, "" for none. Other scopes match no pod here.

        Source: k8s.io/kubernetes pkg/quota/v1/evaluator/core/pods.go, podMatchesScopeFunc.
        """
        return self.is_by_class and all(_matches(each, class_name) for each in self.terms)


class QuotaSum(Struct, frozen=True, kw_only=True):
    """Sum of the limits of all namespaces for a resource, and the devices that nodes offer; None if unknown."""

    resource: str
    hard: int
    offered: int | None


class GpuCapacity(Struct, frozen=True, kw_only=True):
    """What the nodes have: physical GPUs in micro-GPUs, and devices by resource."""

    nodes: int
    physical: int
    offered: dict[str, int]


def scoped_quotas(quotas: Iterable[QuotaObject], rules: Rules) -> tuple[ScopedQuota, ...]:
    """The GPU limits by namespace and name."""
    found = (each for quota in quotas for each in _limits(quota, rules))
    return tuple(sorted(found, key=lambda each: (each.namespace, each.name, each.resource)))


def _limits(quota: QuotaObject, rules: Rules) -> Iterator[ScopedQuota]:
    terms = _terms(quota)
    for key, limit in (quota.spec.hard or {}).items():
        resource = key.removeprefix(_REQUESTS)
        if not key.startswith(_REQUESTS) or not rule_of(resource, rules) or describes(resource, rules):
            continue
        hard, invalid = _amount(limit)
        used = (quota.status.used or {}).get(key)
        yield ScopedQuota(
            namespace=namespace_of(quota.metadata),
            name=quota.metadata.name,
            scope=_scope(terms),
            resource=resource,
            hard=hard,
            used=None if used is None else _amount(used)[0],
            terms=terms,
            invalid=invalid,
        )


def _amount(limit: str | int) -> tuple[int, str]:
    try:
        return requested(limit), ""
    except ValueError as error:
        return 0, str(error)


def _terms(quota: QuotaObject) -> tuple[ScopeExpression, ...]:
    """The requirements of the selector, and the older scopes as such."""
    selector = quota.spec.scope_selector
    expressions = (selector.match_expressions or ()) if selector else ()
    return (
        *expressions,
        *(ScopeExpression(scope_name=name, operator="Exists") for name in quota.spec.scopes or ()),
    )


def _scope(terms: Iterable[ScopeExpression]) -> str:
    return " and ".join(map(_in_words, terms)) or "all pods"


def _in_words(term: ScopeExpression) -> str:
    names = listed(term.values, "or") if term.values else "nothing"
    if term.scope_name != _BY_CLASS:
        return f"scope {term.scope_name}"
    words = {"In": names, "NotIn": f"not {names}", "Exists": "any class", "DoesNotExist": "no class"}
    return words.get(term.operator, f"{term.operator} {names}")


def _matches(term: ScopeExpression, class_name: str) -> bool:
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


def capacity_of(nodes: Iterable[Node], rules: Rules) -> GpuCapacity:
    """The GPUs of all nodes, ready or not; a node whose quantities cannot be read offers nothing."""
    count, physical, offered = 0, 0, defaultdict[str, int](int)
    for node in nodes:
        try:
            units = offered_units(node.status.capacity, rules)
        except ValueError:
            continue
        devices = {name: amount for name, amount in units.items() if not describes(name, rules)}
        count += any(devices.values())
        physical += covered(units.items(), sharing_of(tuple(sorted(labels_of(node).items()))), rules)
        for name, amount in devices.items():
            offered[name] += amount
    return GpuCapacity(nodes=count, physical=physical, offered=dict(offered))


def quota_sums(quotas: Iterable[ScopedQuota], capacity: GpuCapacity | None) -> tuple[QuotaSum, ...]:
    """Sums of the limits by resource.

    A quota without a scope limits its whole namespace, so there the smallest of these counts; elsewhere all count.
    """
    by_place = defaultdict[tuple[str, str], list[ScopedQuota]](list)
    for each in quotas:
        if not each.invalid:
            by_place[each.resource, each.namespace].append(each)
    sums = defaultdict[str, int](int)
    for (resource, _), limits in by_place.items():
        whole = [each.hard for each in limits if not each.terms]
        sums[resource] += min(whole) if whole else sum(each.hard for each in limits)
    return tuple(
        QuotaSum(resource=name, hard=hard, offered=None if capacity is None else capacity.offered.get(name, 0))
        for name, hard in sorted(sums.items())
    )
