"""Which tier a pod belongs to, by its own PriorityClass name and priority."""

import re
from functools import lru_cache

from gputally.accounting.template import expanded
from gputally.model.rules import Rules, TierRule

NO_TIER = "none"
"""The tier of pods without a class, and of those that no rule matches."""


@lru_cache(maxsize=4096)
def tier_of(class_name: str, priority: int | None, rules: Rules) -> str:
    """The tier that the first matching rule gives; `none` without one.

    A pod without a priority has priority 0, as for the scheduler.

    Source: k8s.io/component-helpers scheduling/corev1/helpers.go, PodPriority.
    """
    values = {"class": class_name or NO_TIER}
    for rule in rules.tiers:
        if not _in_range(priority or 0, rule):
            continue
        match = _match(class_name, rule)
        if match or rule.class_name is None:
            return expanded(rule.tier, values, match) or NO_TIER
    return NO_TIER


def _in_range(priority: int, rule: TierRule) -> bool:
    above = rule.min_priority is None or priority >= rule.min_priority
    return above and (rule.max_priority is None or priority <= rule.max_priority)


def _match(class_name: str, rule: TierRule) -> re.Match[str] | None:
    return rule.class_name.fullmatch(class_name) if rule.class_name else None
