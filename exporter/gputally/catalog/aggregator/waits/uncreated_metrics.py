"""Pods with GPUs that workloads lack, as a quota or admission refuses them or a queue holds them back."""

from collections.abc import Iterator

from gputally.accounting.snapshot import Snapshot
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
    help="GPUs that these pods would request.",
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

METRICS = (UNCREATED_PODS, UNCREATED_GPUS, QUOTA_REFUSED)
