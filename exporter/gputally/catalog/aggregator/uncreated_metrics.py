"""Pods with GPUs that workloads lack, as a quota or admission refuses them or a queue holds them back."""

from collections.abc import Iterator

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.totals.total import Total
from gputally.catalog.aggregator.allocation_metrics import cost, gpu_seconds
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.units import GPU


def uncreated_pods(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every tier and reason that a missing pod has had, including 0, so that alerts resolve."""
    if snapshot.uncreated:
        yield from (Row(key, pods) for key, (pods, _) in snapshot.uncreated.reasons.items())


def uncreated_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """The GPUs that these pods would request."""
    if snapshot.uncreated:
        yield from (Row(key, quantity / GPU) for key, (_, quantity) in snapshot.uncreated.reasons.items())


def quota_refused(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every quota row, 0 too; None unless both are watched."""
    if snapshot.uncreated and snapshot.uncreated.refused is not None:
        yield from (Row(key, quantity / GPU) for key, quantity in sorted(snapshot.uncreated.refused.items()))


def uncharged(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every reason, 0 too; none unless refusals are watched."""
    if snapshot.uncreated and snapshot.uncreated.unmeasured_workloads is not None:
        yield from (Row((reason,), count) for reason, count in snapshot.uncreated.unmeasured_workloads.items())


UNCREATED_PODS = Metric[Snapshot](
    name="gputally_uncreated_pods",
    kind=MetricType.GAUGE,
    help="Pods with GPUs that do not exist, as a quota or admission refuses them (if Events FailedCreate are watched) "
    "or a queue has not admitted their Job.",
    labels=("tier", "reason"),
    rows=uncreated_pods,
)

UNCREATED_GPUS = Metric[Snapshot](
    name="gputally_uncreated_gpus",
    kind=MetricType.GAUGE,
    help="GPUs that these pods would request, without those of pods whose wait is not charged.",
    labels=("tier", "reason"),
    rows=uncreated_gpus,
)

QUOTA_REFUSED = Metric[Snapshot](
    name="gputally_quota_refused_gpus",
    kind=MetricType.GAUGE,
    help="GPUs of pods that ResourceQuotas refuse to create, if ResourceQuotas and Events FailedCreate are watched.",
    labels=("tier", "tenant"),
    rows=quota_refused,
)

UNCREATED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_uncreated_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds of pods that workloads lacked, as a quota or admission refused them or a queue had not admitted "
    "their Job, by cause; no pending GPU-second is among them.",
    labels=("tier", "cause"),
    rows=gpu_seconds(Total.UNCREATED),
)

UNCREATED_COST = Metric[Snapshot](
    name="gputally_uncreated_cost_total",
    kind=MetricType.COUNTER,
    help="What these GPU-seconds would have cost on the nodes that the pods select, in units of the currency; where "
    "these have several prices, at the lowest.",
    labels=("tier", "cause", "currency"),
    rows=cost(Total.UNCREATED_COST),
)

UNCREATED_UNPRICED = Metric[Snapshot](
    name="gputally_uncreated_unpriced_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="Of these GPU-seconds, those of pods that select no node with a price, which no cost includes.",
    labels=("tier", "cause"),
    rows=gpu_seconds(Total.UNCREATED_UNPRICED),
    reference_only=True,
)

UNCREATED_AT_LEAST = Metric[Snapshot](
    name="gputally_uncreated_at_least_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds of uncreated pods that are a lower bound: the object of their workload is not read, so only one "
    "pod counts, which a quota refused.",
    labels=("tier", "cause"),
    rows=gpu_seconds(Total.UNCREATED_AT_LEAST),
    reference_only=True,
)

UNCHARGED_WORKLOADS = Metric[Snapshot](
    name="gputally_uncreated_uncharged_workloads",
    kind=MetricType.GAUGE,
    help="Workloads whose pods are refused but whose wait is not charged, because their object is not read and their "
    "Event states no credible number of GPUs, by reason.",
    labels=("reason",),
    rows=uncharged,
    reference_only=True,
)

METRICS = (
    UNCREATED_PODS,
    UNCREATED_GPUS,
    QUOTA_REFUSED,
    UNCREATED_GPU_SECONDS,
    UNCREATED_COST,
    UNCREATED_UNPRICED,
    UNCREATED_AT_LEAST,
    UNCHARGED_WORKLOADS,
)
