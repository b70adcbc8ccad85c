"""The tenant of a pod, from its labels at the time."""

from collections.abc import Mapping

from gputally.accounting.terms.expression import matched
from gputally.accounting.terms.template import expanded
from gputally.model.rules import Rules, TenantRule, TenantSource

UNASSIGNED = "unassigned"
"""The tenant of pods that no rule matches."""


def tenant_of(
    namespace: str,
    *,
    pod_labels: Mapping[str, str],
    namespace_labels: Mapping[str, str],
    namespace_annotations: Mapping[str, str],
    rules: Rules,
) -> str:
    """The tenant from the first matching rule; `unassigned` without one.

    A rule does not match a missing or empty value, nor if it would return an empty tenant.
    """
    places: dict[TenantSource, Mapping[str, str]] = {
        TenantSource.POD_LABEL: pod_labels,
        TenantSource.NAMESPACE_LABEL: namespace_labels,
        TenantSource.NAMESPACE_ANNOTATION: namespace_annotations,
        TenantSource.NAMESPACE: {"": namespace},
    }
    tenants = (_tenant(rule, places[rule.source].get(rule.key, "")) for rule in rules.tenants)
    return next(filter(None, tenants), UNASSIGNED)


def relevant_labels(rules: Rules, source: TenantSource = TenantSource.POD_LABEL) -> frozenset[str]:
    """The keys of labels, or annotations, of `source` that the rules read; no others are stored."""
    return frozenset(rule.key for rule in rules.tenants if rule.source is source)


def _tenant(rule: TenantRule, value: str) -> str:
    groups = matched(rule.pattern, value) if rule.pattern is not None else {}
    return expanded(rule.tenant, {**groups, "value": value}) if value and groups is not None else ""
