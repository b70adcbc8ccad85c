"""Existing tiers, which of them serve user traffic, their time limits, PriorityClasses and GPU quotas."""

from collections.abc import Iterator

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.units import GPU, US_PER_SECOND


def tier_info(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every tier, including tiers of pending pods only."""
    serving = snapshot.serving
    return (Row((tier, "true" if serves else "false"), 1) for tier, serves in sorted(serving.tiers.items()))


def serving_expected(snapshot: Snapshot) -> Iterator[Row]:
    """0 for a configuration with `serving: []`."""
    yield Row((), snapshot.serving.expected)


def serving_patterns_unmatched(snapshot: Snapshot) -> Iterator[Row]:
    """0 without a configuration."""
    yield Row((), snapshot.serving.unmatched)


def pending_limits(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every tier, including tiers of pending pods only."""
    return (
        Row((tier,), each.pending_us / US_PER_SECOND) for tier, each in sorted(snapshot.serving.time_limits.items())
    )


def starting_limits(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every tier, including tiers of pending pods only."""
    return (
        Row((tier,), each.starting_us / US_PER_SECOND) for tier, each in sorted(snapshot.serving.time_limits.items())
    )


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


TIER_INFO = Metric[Snapshot](
    name="gputally_tier_info",
    kind=MetricType.INFO,
    help="Tiers that exist, and whether each serves user traffic: join by tier to select serving tiers.",
    labels=("tier", "serving"),
    rows=tier_info,
)

SERVING_EXPECTED = Metric[Snapshot](
    name="gputally_serving_expected",
    kind=MetricType.GAUGE,
    help="Whether some tier is expected to serve user traffic: 0 if the configuration declares that none does.",
    rows=serving_expected,
)

SERVING_PATTERNS_UNMATCHED = Metric[Snapshot](
    name="gputally_serving_patterns_unmatched",
    kind=MetricType.GAUGE,
    help="Patterns in the configuration's list of serving tiers that match no tier: check their spelling.",
    rows=serving_patterns_unmatched,
)

PENDING_LIMIT = Metric[Snapshot](
    name="gputally_tier_pending_limit_seconds",
    kind=MetricType.GAUGE,
    help="How long pods of a tier may wait for GPUs before an alert, by the configuration's time_limits.",
    labels=("tier",),
    rows=pending_limits,
)

STARTING_LIMIT = Metric[Snapshot](
    name="gputally_tier_starting_limit_seconds",
    kind=MetricType.GAUGE,
    help="How long bound pods of a tier may take until a container runs before an alert, by the configuration's "
    "time_limits.",
    labels=("tier",),
    rows=starting_limits,
)

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
    help="GPUs that the ResourceQuotas of a tenant allow, by the tier of the pods that they count (`any`: of several "
    "tiers), if ResourceQuotas are watched.",
    labels=("tier", "tenant"),
    rows=quota_hard,
)

QUOTA_USED = Metric[Snapshot](
    name="gputally_quota_used_gpus",
    kind=MetricType.GAUGE,
    help="GPUs that running and pending pods request under these quotas, if ResourceQuotas are watched.",
    labels=("tier", "tenant"),
    rows=quota_used,
)

METRICS = (
    *(TIER_INFO, SERVING_EXPECTED, SERVING_PATTERNS_UNMATCHED),
    *(PENDING_LIMIT, STARTING_LIMIT),
    *(PRIORITY_CLASS_VALUE, QUOTA_HARD, QUOTA_USED),
)
