"""The rule that permitted a preemption: a higher priority, by a class whose policy is not Never, or that of a queue."""

from gputally.ledger.preemption_records import PreemptionRecord
from gputally.model.kueue_preemption import RULE_WORDS, QueueRule


def rule_of(found: PreemptionRecord | None, *, tiers_only: bool) -> str:
    """The rule in words; with `tiers_only` without class and priority of the preemptor."""
    if found is not None and found.queue_rule:
        return _rule_of_queue(found, found.queue_rule, tiers_only=tiers_only)
    if found is None or found.is_permitted is None:
        return "not known"
    victim = _priority(found.victim_priority, found.victim_class)
    by = _preemptor(found, tiers_only=tiers_only)
    if found.is_permitted:
        return f"{by} is above {victim}" + ("" if tiers_only else ", policy PreemptLowerPriority")
    if not found.preemptor_may_preempt:
        return f"not permitted: {by} has the policy Never"
    return f"not permitted: {by} is not above {victim}"


def _rule_of_queue(found: PreemptionRecord, rule: str, *, tiers_only: bool) -> str:
    """The rule of Kueue; within a ClusterQueue it follows from the priorities of both workloads there.

    A ledger may have rules that a later version wrote.
    """
    text = f"{rule} ({RULE_WORDS[rule]})" if rule in RULE_WORDS else rule
    theirs, own = found.preemptor_priority, found.victim_priority
    if rule != QueueRule.IN_CLUSTER_QUEUE or theirs is None or own is None:
        return text
    by = f"tier {found.preemptor_tier}" if tiers_only else f"priority {theirs}"
    return f"{text}: {by} before priority {own}"


def _preemptor(found: PreemptionRecord, *, tiers_only: bool) -> str:
    if tiers_only:
        return f"the priority of tier {found.preemptor_tier}"
    return _priority(found.preemptor_priority, found.preemptor_class)


def _priority(value: int | None, class_name: str | None) -> str:
    return f"priority {value} {f'of class {class_name}' if class_name else 'without a class'}"
