"""Tiers: which one a pod has, which of them serve users, and how long their pods may wait."""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from gputally.accounting.terms.patterns import expanded, matched
from gputally.model.pod_record import PodRecord
from gputally.model.rules import SERVING_BY_NAME, Rules, TierRule
from gputally.model.units import US_PER_SECOND

NO_TIER = "none"
"""The tier of pods without a class, and without a matching rule."""
PENDING_US: Final = 6 * 3600 * US_PER_SECOND
"""The default. Training may wait overnight; six hours without a GPU deserve a look."""
STARTING_US: Final = 30 * 60 * US_PER_SECOND
"""The default. Images of 50 GB take some minutes to pull."""


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


@lru_cache(maxsize=4096)
def serves(tier: str, rules: Rules) -> bool:
    """Whether one of the serving patterns matches the whole name of the tier."""
    return any(matched(pattern, tier) is not None for pattern in rules.serving)


def unmatched(tiers: Collection[str], rules: Rules) -> int:
    """How many configured serving patterns match none of `tiers`; the built-in one may."""
    written = [pattern for pattern in rules.serving if pattern != SERVING_BY_NAME]
    return sum(all(matched(pattern, tier) is None for tier in tiers) for pattern in written)


class TierLimits(NamedTuple):
    """The limits of a tier, in µs."""

    pending_us: int
    starting_us: int


@lru_cache(maxsize=4096)
def limits_of(tier: str, rules: Rules) -> TierLimits:
    """The first limits that the configuration has for the tier, else the defaults."""
    own = [each for each in rules.time_limits if each.tier in ("", tier)]
    pending_us = next((each.pending_us for each in own if each.pending_us is not None), PENDING_US)
    return TierLimits(pending_us, next((each.starting_us for each in own if each.starting_us is not None), STARTING_US))
