"""Preemptions between tiers, other causes why pods lost their GPUs, and how long the steps of a preemption take."""

from collections.abc import Iterator, Mapping

from gputally.accounting.disruptions.counters import STEP_BOUNDS_S, STEPS
from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.totals.total import Total
from gputally.catalog.aggregator.allocation_metrics import counts, gpus
from gputally.catalog.metric import HistogramRow, Metric, MetricType, Row
from gputally.catalog.sums import bounds_of, histogram_of
from gputally.model.units import GPU, US_PER_SECOND

_BOUNDS = bounds_of(STEP_BOUNDS_S)


def repeat_victims(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every tier and tenant with a preempted job, 0 if none was preempted often."""
    return (Row(labels, count) for labels, count in sorted(snapshot.repeat_victims.items()))


def preempting_victims(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every pair of tiers that ever had a preemption, including 0."""
    return _by_tiers(snapshot, {tiers: each.pods for tiers, each in snapshot.preempting.items()})


def preempting_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """GPUs that preempted pods have not released, for every pair of tiers that ever had a preemption, including 0."""
    return _by_tiers(snapshot, {tiers: each.quantity / GPU for tiers, each in snapshot.preempting.items()})


def _by_tiers(snapshot: Snapshot, values: Mapping[tuple[str, str], float]) -> Iterator[Row]:
    counted = snapshot.totals[Total.PREEMPTIONS]
    earlier = {labels for labels, count in zip(counted.labels, counted.values, strict=True) if count}
    return (Row(tiers, values.get((tiers[0], tiers[1]), 0)) for tiers in sorted(earlier | values.keys()))


def preempting_oldest(snapshot: Snapshot) -> Iterator[Row]:
    """A timestamp; no row where no preemption is under way, since any timestamp would be wrong."""
    return (Row(tiers, each.oldest_us / US_PER_SECOND) for tiers, each in sorted(snapshot.preempting.items()))


def unused_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every known tier, including 0."""
    found = dict.fromkeys(snapshot.tiers, 0) | dict(snapshot.unused_after_preemption)
    yield from (Row((tier,), quantity / GPU) for tier, quantity in found.items())


def preemption_steps(snapshot: Snapshot) -> Iterator[HistogramRow]:
    """Every step, including 0."""
    counts = {p.labels: p.value for p in snapshot.totals[Total.PREEMPTION_STEPS]}
    sums = {p.labels: p for p in snapshot.totals[Total.PREEMPTION_STEP_TIME]}
    for step in STEPS:
        total = sums[(step,)]
        yield histogram_of((step,), counts, _BOUNDS, sum_us=total.value, created_us=total.created_us)


PREEMPTIONS = Metric[Snapshot](
    name="gputally_preemptions_total",
    kind=MetricType.COUNTER,
    help="Pods with GPUs that the scheduler marked as preempted and deleted, or whose workload Kueue preempted, if its "
    "Workloads are watched; by victim tier and preemptor tier.",
    labels=("victim_tier", "preemptor_tier"),
    rows=counts(Total.PREEMPTIONS),
)
"""The whole matrix of known tiers, including 0, so that `increase()` counts the first preemption."""

PREEMPTED_GPUS = Metric[Snapshot](
    name="gputally_preempted_gpus_total",
    kind=MetricType.COUNTER,
    help="GPUs allocated to preempted pods, by victim tier and preemptor tier.",
    labels=("victim_tier", "preemptor_tier"),
    rows=gpus(Total.PREEMPTED),
)
"""The whole matrix of known tiers, including 0; a victim may have several GPUs."""

PREEMPTING_VICTIMS = Metric[Snapshot](
    name="gputally_preempting_victims",
    kind=MetricType.GAUGE,
    help="Preempted pods that have not released their GPUs yet, by victim tier and preemptor tier.",
    labels=("victim_tier", "preemptor_tier"),
    rows=preempting_victims,
)

PREEMPTING_GPUS = Metric[Snapshot](
    name="gputally_preempting_gpus",
    kind=MetricType.GAUGE,
    help="GPUs that preempted pods have not released yet, by victim tier and preemptor tier.",
    labels=("victim_tier", "preemptor_tier"),
    rows=preempting_gpus,
)

PREEMPTING_OLDEST = Metric[Snapshot](
    name="gputally_preempting_oldest_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time of the oldest deletion request of a preempted pod that has not released its GPUs yet.",
    labels=("victim_tier", "preemptor_tier"),
    rows=preempting_oldest,
)

TENANT_PREEMPTIONS = Metric[Snapshot](
    name="gputally_tenant_preemptions_total",
    kind=MetricType.COUNTER,
    help="Preempted pods by victim tier and victim tenant.",
    labels=("victim_tier", "victim_tenant"),
    rows=counts(Total.TENANT_PREEMPTIONS),
)

FORBIDDEN_PREEMPTIONS = Metric[Snapshot](
    name="gputally_forbidden_preemptions_total",
    kind=MetricType.COUNTER,
    help="Preemptions that the priorities do not permit: the preemptor's is not higher than the victim's, or its "
    "preemptionPolicy is Never.",
    labels=("victim_tier", "preemptor_tier"),
    rows=counts(Total.FORBIDDEN),
)
"""The matrix of known tiers without unknown preemptors, including 0, so that an alert sees the first one."""

DISRUPTIONS = Metric[Snapshot](
    name="gputally_disruptions_total",
    kind=MetricType.COUNTER,
    help="Pods that lost their GPUs before they had ended by themselves, by cause; with cause container_restart, "
    "restarts of containers that lost work without a new pod.",
    labels=("tier", "tenant", "cause"),
    rows=counts(Total.DISRUPTIONS),
)

GRACE_EXCEEDED = Metric[Snapshot](
    name="gputally_grace_period_exceeded_total",
    kind=MetricType.COUNTER,
    help="Disrupted pods that held their GPUs for more than 2 s longer than their grace period.",
    labels=("tier", "tenant"),
    rows=counts(Total.GRACE_EXCEEDED),
)

PREEMPTION_STEPS = Metric[Snapshot](
    name="gputally_preemption_step_seconds",
    kind=MetricType.HISTOGRAM,
    help="Duration of the steps of a preemption: request (from decision to deletion request), stop (to the end of the "
    "last container), reuse (from release to the next pod on that node), replace (from decision until the replacement "
    "runs).",
    labels=("step",),
    rows=preemption_steps,
)

REPEAT_VICTIMS = Metric[Snapshot](
    name="gputally_repeat_victim_jobs",
    kind=MetricType.GAUGE,
    help="Jobs preempted three or more times within a day, by a scheduler or a queue; pods together count once.",
    labels=("tier", "tenant"),
    rows=repeat_victims,
)

BUDGET_VIOLATIONS = Metric[Snapshot](
    name="gputally_disruption_budget_violations_total",
    kind=MetricType.COUNTER,
    help="Disrupted pods of which a PodDisruptionBudget allowed no disruption when that was decided, if "
    "PodDisruptionBudgets are watched.",
    labels=("tier", "tenant", "cause"),
    rows=counts(Total.BUDGET_VIOLATIONS),
)

UNUSED_GPUS = Metric[Snapshot](
    name="gputally_preemption_unused_gpus",
    kind=MetricType.GAUGE,
    help="GPUs that preemptions of the last hour freed and that no pod has taken since, by the tier of the victims.",
    labels=("tier",),
    rows=unused_gpus,
)

METRICS = (
    *(PREEMPTIONS, PREEMPTED_GPUS, TENANT_PREEMPTIONS, FORBIDDEN_PREEMPTIONS),
    *(PREEMPTING_VICTIMS, PREEMPTING_GPUS, PREEMPTING_OLDEST, UNUSED_GPUS),
    *(DISRUPTIONS, GRACE_EXCEEDED, BUDGET_VIOLATIONS, REPEAT_VICTIMS, PREEMPTION_STEPS),
)
