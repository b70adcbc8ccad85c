"""The tier of a pod, from its PriorityClass name, priority and labels."""

from collections.abc import Mapping
from functools import lru_cache

from gputally.accounting.terms.expression import matched
from gputally.accounting.terms.template import expanded
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules, TierRule

NO_TIER = "none"
"""The tier of pods without a class, and without a matching rule."""


def tier_of_pod(record: PodRecord, rules: Rules) -> str:
    """The tier of a pod with its present labels."""
    keys = tier_labels(rules)
    labels = tuple(pair for pair in record.labels if pair[0] in keys) if keys else ()
    return tier_of(record.class_name, record.priority, rules, labels)


@lru_cache(maxsize=8)
def tier_labels(rules: Rules) -> frozenset[str]:
    """The pod label keys that tier rules read."""
    return frozenset(rule.label for rule in rules.tiers if rule.label)


@lru_cache(maxsize=4096)
def tier_of(class_name: str, priority: int | None, rules: Rules, labels: tuple[tuple[str, str], ...] = ()) -> str:
    """The tier from the first matching rule; `none` without one.

    A pod without a priority has priority 0, as for the scheduler.

    Source: k8s.io/component-helpers scheduling/corev1/helpers.go, PodPriority.
    """
    for rule in rules.tiers:
        values = _values(rule, class_name, dict(labels)) if _in_range(priority or 0, rule) else None
        if values is not None:
            return expanded(rule.tier, {**values, "class": class_name or NO_TIER}) or NO_TIER
    return NO_TIER


def _in_range(priority: int, rule: TierRule) -> bool:
    above = rule.min_priority is None or priority >= rule.min_priority
    return above and (rule.max_priority is None or priority <= rule.max_priority)


def _values(rule: TierRule, class_name: str, labels: Mapping[str, str]) -> Mapping[str, str] | None:
    """The values of the placeholders in the rule's template; None if the rule does not match."""
    groups = matched(rule.class_name, class_name) if rule.class_name is not None else {}
    if groups is None or not rule.label:
        return groups
    value = labels.get(rule.label, "")
    groups = matched(rule.matches, value) if rule.matches is not None else {}
    return {**groups, "value": value} if value and groups is not None else None
