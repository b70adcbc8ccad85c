"""ResourceQuotas of GPUs by namespace and PriorityClass, and their sum against the capacity of the nodes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from gputally.accounting.policy.quotas import QuotaLimit, quota_limits
from gputally.formatting.amounts import listed
from gputally.model.kube.nodes import Node
from gputally.model.kube.policy import ScopeExpression
from gputally.model.rules import Rules
from gputally.placement.quotas import BY_CLASS
from gputally.posture.gpu_workloads import namespace_of
from gputally.posture.objects import QuotaObject
from gputally.shares.label_conflicts import sharing
from gputally.shares.request import offered_units
from gputally.shares.schemes import covered, describes, labels_of


class ScopedQuota(QuotaLimit, frozen=True, kw_only=True):
    """A limit, whose `scope` says in words which pods it counts."""

    scope: str


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
    place = namespace_of(quota.metadata)
    for each in quota_limits(place, quota.metadata.name, quota.spec, quota.status, rules=rules):
        yield ScopedQuota(**structs.asdict(each), scope=_scope(each.terms))


def _scope(terms: Iterable[ScopeExpression]) -> str:
    return " and ".join(map(_in_words, terms)) or "all pods"


def _in_words(term: ScopeExpression) -> str:
    names = listed(term.values, "or") if term.values else "nothing"
    if term.scope_name != BY_CLASS:
        return f"scope {term.scope_name}"
    words = {"In": names, "NotIn": f"not {names}", "Exists": "any class", "DoesNotExist": "no class"}
    return words.get(term.operator, f"{term.operator} {names}")


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
        offer = tuple(units.items())
        physical += covered(offer, sharing(offer, tuple(sorted(labels_of(node).items())), rules).labels, rules)
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
