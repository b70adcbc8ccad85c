"""PriorityClasses, GPU quotas, and disruptions that violate a PodDisruptionBudget."""

from collections.abc import Iterator

from gputally.accounting.snapshot import Snapshot
from gputally.accounting.totals.totals import Total
from gputally.catalog.aggregator.allocation_metrics import counts
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.units import GPU


def class_values(snapshot: Snapshot) -> Iterator[Row]:
    """A row for each class, up to a limit."""
    for tier, each in snapshot.priority_classes:
        default = "true" if each.is_default else "false"
        yield Row((each.name, tier, each.preemption_policy, default), each.value)


def quota_hard(snapshot: Snapshot) -> Iterator[Row]:
    """None if quotas are not watched."""
    return (Row(labels, use.hard / GPU) for labels, use in sorted(snapshot.quotas.items()))


def quota_used(snapshot: Snapshot) -> Iterator[Row]:
    """None for quotas whose use is not counted yet."""
    return (Row(labels, use.used / GPU) for labels, use in sorted(snapshot.quotas.items()) if use.used is not None)


PRIORITY_CLASS_VALUE = Metric[Snapshot](
    name="gputally_priority_class_value",
    kind=MetricType.GAUGE,
    help="Value of each PriorityClass, with its tier, preemptionPolicy and whether it is the globalDefault; up to 100 "
    "classes, without those of the system.",
    labels=("priority_class", "tier", "preemption_policy", "global_default"),
    rows=class_values,
)

QUOTA_HARD = Metric[Snapshot](
    name="gputally_quota_hard_gpus",
    kind=MetricType.GAUGE,
    help="GPUs that the ResourceQuotas of a tenant allow, by the tier of the pods that they count; `any` for quotas of "
    "several tiers. Only with --watch=resourcequotas.",
    labels=("tier", "tenant"),
    rows=quota_hard,
)

QUOTA_USED = Metric[Snapshot](
    name="gputally_quota_used_gpus",
    kind=MetricType.GAUGE,
    help="GPUs requested under these quotas, by running and pending pods. Only with --watch=resourcequotas.",
    labels=("tier", "tenant"),
    rows=quota_used,
)

BUDGET_VIOLATIONS = Metric[Snapshot](
    name="gputally_disruption_budget_violations_total",
    kind=MetricType.COUNTER,
    help="Disrupted pods of which a PodDisruptionBudget allowed no disruption when that was decided. Only with "
    "--watch=poddisruptionbudgets.",
    labels=("tier", "tenant", "cause"),
    rows=counts(Total.BUDGET_VIOLATIONS),
)

METRICS = (PRIORITY_CLASS_VALUE, QUOTA_HARD, QUOTA_USED, BUDGET_VIOLATIONS)
