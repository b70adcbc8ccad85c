"""Pods that wait for GPUs, also those that workloads lack, and how long they wait."""

from collections.abc import Iterator

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.pods.posting import SCHEDULING_BOUNDS_S
from gputally.accounting.totals.total import Total
from gputally.catalog.aggregator.allocation_metrics import cost, gpu_seconds
from gputally.catalog.metric import Columns, HistogramRow, Metric, MetricType, Row
from gputally.catalog.sums import Grouping, bounds_of, histogram_of
from gputally.model.units import GPU, US_PER_SECOND

_BOUNDS = bounds_of(SCHEDULING_BOUNDS_S)


def pending_pods(snapshot: Snapshot) -> Columns:
    """A row for every tier and tenant that waits or ever had GPUs, including 0, so that alerts resolve."""
    return _by_pair(snapshot, {group: waiting.pods for group, waiting in snapshot.waiting.items()})


def pending_gpus(snapshot: Snapshot) -> Columns:
    """The GPUs that the pods request, weighed as on a node without GPU sharing."""
    return _by_pair(snapshot, {group: waiting.quantity / GPU for group, waiting in snapshot.waiting.items()})


def _by_pair(snapshot: Snapshot, waiting: dict[tuple[str, str], float]) -> Columns:
    known = _PAIRS.of(snapshot.totals[Total.ALLOCATED].labels)
    values: list[float] = [0] * len(known.labels)
    new = {group: value for group, value in waiting.items() if group not in known.indexes}
    for group in waiting.keys() - new.keys():
        values[known.indexes[group]] = waiting[group]
    return Columns((*known.labels, *new) if new else known.labels, [*values, *new.values()])


_PAIRS = Grouping(lambda labels: labels[:2])


def pending_model_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every GPU model, including 0, and `any` for pods that require none."""
    return (Row((model,), quantity / GPU) for model, quantity in snapshot.wanted.items())


def pending_oldest(snapshot: Snapshot) -> Columns:
    """A timestamp, not an age; no row where no pod waits, since any timestamp would be wrong."""
    return Columns(tuple(snapshot.waiting), [each.oldest_us / US_PER_SECOND for each in snapshot.waiting.values()])


def time_to_schedule(snapshot: Snapshot) -> Iterator[HistogramRow]:
    """Every known tier, including 0."""
    counts = {p.labels: p.value for p in snapshot.totals[Total.SCHEDULED]}
    sums = {p.labels: p for p in snapshot.totals[Total.SCHEDULING_TIME]}
    for tier in snapshot.tiers:
        total = sums.get((tier,))
        yield histogram_of(
            (tier,),
            counts,
            _BOUNDS,
            sum_us=total.value if total else 0,
            created_us=total.created_us if total else snapshot.accounting_start_us,
        )


PENDING_PODS = Metric[Snapshot](
    name="gputally_pending_pods",
    kind=MetricType.GAUGE,
    help="Pods that request GPUs and are not bound to a node; pulling images or starting containers does not count.",
    labels=("tier", "tenant"),
    rows=pending_pods,
)

PENDING_GPUS = Metric[Snapshot](
    name="gputally_pending_gpus",
    kind=MetricType.GAUGE,
    help="GPUs requested by pending pods, also by those whose wait is not charged.",
    labels=("tier", "tenant"),
    rows=pending_gpus,
)

PENDING_MODEL_GPUS = Metric[Snapshot](
    name="gputally_pending_model_gpus",
    kind=MetricType.GAUGE,
    help="GPUs requested by pending pods, also by those whose wait is not charged, by the GPU model that they require.",
    labels=("gpu_model",),
    rows=pending_model_gpus,
)

PENDING_OLDEST = Metric[Snapshot](
    name="gputally_pending_oldest_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Creation time of the pod that has been pending longest.",
    labels=("tier", "tenant"),
    rows=pending_oldest,
)

TIME_TO_SCHEDULE = Metric[Snapshot](
    name="gputally_time_to_schedule_seconds",
    kind=MetricType.HISTOGRAM,
    help="Time from the creation of a pod that requests GPUs to its binding, accurate to the second.",
    labels=("tier",),
    rows=time_to_schedule,
)

METRICS = (PENDING_PODS, PENDING_GPUS, PENDING_MODEL_GPUS, PENDING_OLDEST, TIME_TO_SCHEDULE)


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

UNCREATED_METRICS = (
    UNCREATED_PODS,
    UNCREATED_GPUS,
    QUOTA_REFUSED,
    UNCREATED_GPU_SECONDS,
    UNCREATED_COST,
    UNCREATED_UNPRICED,
    UNCREATED_AT_LEAST,
    UNCHARGED_WORKLOADS,
)
