"""Which tier a pod belongs to, by its own PriorityClass name and priority."""

from functools import lru_cache

from gputally.accounting.terms.expression import Groups, matched
from gputally.accounting.terms.template import expanded
from gputally.model.rules import Rules, TierRule

NO_TIER = "none"
"""The tier of pods without a class, and of those that no rule matches."""


@lru_cache(maxsize=4096)
def tier_of(class_name: str, priority: int | None, rules: Rules) -> str:
    """The tier that the first matching rule gives; `none` without one.

    A pod without a priority has priority 0, as for the scheduler.

    Source: k8s.io/component-helpers scheduling/corev1/helpers.go, PodPriority.
    """
    for rule in rules.tiers:
        groups = _groups(class_name, rule) if _in_range(priority or 0, rule) else None
        if groups is not None:
            return expanded(rule.tier, {**groups, "class": class_name or NO_TIER}) or NO_TIER
    return NO_TIER


def _in_range(priority: int, rule: TierRule) -> bool:
    above = rule.min_priority is None or priority >= rule.min_priority
    return above and (rule.max_priority is None or priority <= rule.max_priority)


def _groups(class_name: str, rule: TierRule) -> Groups | None:
    return matched(rule.class_name, class_name) if rule.class_name is not None else {}
