"""Preemptions between tiers."""

from collections.abc import Iterator

from gputally.accounting.snapshot import Snapshot
from gputally.accounting.totals.totals import Total
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.units import GPU


def preemptions(snapshot: Snapshot) -> Iterator[Row]:
    """The whole matrix of known tiers, including 0, so that `increase()` counts the first preemption."""
    return (Row(p.labels, p.value, p.created_us) for p in snapshot.totals[Total.PREEMPTIONS])


def preempted_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """The same matrix in GPUs: a victim may have several."""
    return (Row(p.labels, p.value / GPU, p.created_us) for p in snapshot.totals[Total.PREEMPTED])


def forbidden_preemptions(snapshot: Snapshot) -> Iterator[Row]:
    """The same matrix without unknown preemptors, including 0, so that an alert sees the first one."""
    return (Row(p.labels, p.value, p.created_us) for p in snapshot.totals[Total.FORBIDDEN])


def tenant_preemptions(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every tier and tenant that had a victim."""
    return (Row(p.labels, p.value, p.created_us) for p in snapshot.totals[Total.TENANT_PREEMPTIONS])


PREEMPTIONS = Metric[Snapshot](
    name="gputally_preemptions_total",
    kind=MetricType.COUNTER,
    help="Pods with GPUs that the scheduler marked as preempted and deleted, by victim tier and preemptor tier.",
    labels=("victim_tier", "preemptor_tier"),
    rows=preemptions,
)

PREEMPTED_GPUS = Metric[Snapshot](
    name="gputally_preempted_gpus_total",
    kind=MetricType.COUNTER,
    help="GPUs allocated to preempted pods, by victim tier and preemptor tier.",
    labels=("victim_tier", "preemptor_tier"),
    rows=preempted_gpus,
)

TENANT_PREEMPTIONS = Metric[Snapshot](
    name="gputally_tenant_preemptions_total",
    kind=MetricType.COUNTER,
    help="Preempted pods by victim tier and victim tenant.",
    labels=("victim_tier", "victim_tenant"),
    rows=tenant_preemptions,
)

FORBIDDEN_PREEMPTIONS = Metric[Snapshot](
    name="gputally_forbidden_preemptions_total",
    kind=MetricType.COUNTER,
    help="Preemptions that the priorities do not permit: the preemptor's is not higher than the victim's, or its "
    "preemptionPolicy is Never.",
    labels=("victim_tier", "preemptor_tier"),
    rows=forbidden_preemptions,
)

METRICS = (PREEMPTIONS, PREEMPTED_GPUS, TENANT_PREEMPTIONS, FORBIDDEN_PREEMPTIONS)
