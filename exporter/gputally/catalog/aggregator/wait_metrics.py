"""Why pods wait for GPUs, what that is charged to, and what would fit now."""

from collections.abc import Callable, Iterator

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.totals.total import Total
from gputally.catalog.aggregator.allocation_metrics import cost, gpu_seconds
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.partial_gangs import NotCompared
from gputally.model.units import GPU, US_PER_SECOND
from gputally.model.verdicts import FindingKind
from gputally.model.waits import Uncharged


def reason_pods(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every tier and reason that a pod has had, including 0, so that alerts resolve."""
    if snapshot.waits:
        yield from (Row(key, pods) for key, (pods, _) in snapshot.waits.reasons.items())


def reason_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """The GPUs that these pods request."""
    if snapshot.waits:
        yield from (Row(key, quantity / GPU) for key, (_, quantity) in snapshot.waits.reasons.items())


def not_charged(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every reason, including 0, so that alerts resolve."""
    if snapshot.waits:
        found = dict(snapshot.uncreated.uncharged_pods) if snapshot.uncreated else {}
        for each in Uncharged:
            pending = snapshot.waits.uncharged_pods if each is Uncharged.IMPOSSIBLE else 0
            yield Row((each.value,), pending + found.get(each, 0))


def finding_pods(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every known tier, including 0, so that alerts resolve."""
    if snapshot.waits:
        known = {(tier, kind.value): 0 for tier in snapshot.tiers for kind in FindingKind}
        yield from (Row(key, pods) for key, pods in {**known, **snapshot.waits.findings}.items())


def partial_gangs(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every known tier, including 0, so that alerts resolve."""
    if snapshot.waits:
        known = dict.fromkeys(snapshot.tiers, 0) | {
            tier: each.gangs for tier, each in snapshot.waits.partial.sums.items()
        }
        yield from (Row((tier,), gangs) for tier, gangs in known.items())


def partial_gang_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """The GPUs that they hold."""
    if snapshot.waits:
        known = dict.fromkeys(snapshot.tiers, 0) | {t: each.quantity for t, each in snapshot.waits.partial.sums.items()}
        yield from (Row((tier,), quantity / GPU) for tier, quantity in known.items())


def oldest_partial_gang(snapshot: Snapshot) -> Iterator[Row]:
    """Only for tiers that have any."""
    if snapshot.waits:
        yield from (Row((t,), each.oldest_us / US_PER_SECOND) for t, each in snapshot.waits.partial.sums.items())


def deadlocked_gangs(snapshot: Snapshot) -> Iterator[Row]:
    """One row, including 0."""
    if snapshot.waits:
        yield Row((), snapshot.waits.partial.deadlocked)


def not_compared(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every reason, including 0."""
    if snapshot.waits:
        found = snapshot.waits.partial.not_compared
        yield from (Row((each.value,), found.get(each, 0)) for each in NotCompared)


def fitting_pods(snapshot: Snapshot) -> Iterator[Row]:
    """A row for each model, pool and size, once all pods on the nodes are known."""
    if snapshot.waits:
        for (model, pool, size), count in snapshot.waits.fits.items():
            yield Row((model, pool, str(size)), count)


def stranded_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """A row for each model, pool and reason that has had some, including 0."""
    if snapshot.waits:
        yield from (Row(key, count) for key, count in snapshot.waits.stranded.items())


def job_nodes(column: int) -> Callable[[Snapshot], Iterator[Row]]:
    """A row for every known tier, including 0, once all pods on the nodes are known."""

    def rows(snapshot: Snapshot) -> Iterator[Row]:
        if snapshot.waits and snapshot.waits.fits:
            found = dict.fromkeys(snapshot.tiers, (0, 0)) | dict(snapshot.waits.job_nodes)
            yield from (Row((tier,), nodes[column]) for tier, nodes in found.items())

    return rows


PENDING_GPU_SECONDS = Metric[Snapshot](
    name="gputally_pending_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="GPU-seconds that pods waited, from their creation until they were bound or deleted, by cause and by the tier "
    "that holds the GPUs, each for at most the GPUs that it holds; nobody for the rest.",
    labels=("tier", "occupying_tier", "cause"),
    rows=gpu_seconds(Total.PENDING),
)

PENDING_COST = Metric[Snapshot](
    name="gputally_pending_cost_total",
    kind=MetricType.COUNTER,
    help="What the pending GPU-seconds would have cost on the nodes that their pods select, in units of the currency; "
    "where these have several prices, at the lowest.",
    labels=("tier", "occupying_tier", "cause", "currency"),
    rows=cost(Total.PENDING_COST),
)

PENDING_UNPRICED = Metric[Snapshot](
    name="gputally_pending_unpriced_gpu_seconds_total",
    kind=MetricType.COUNTER,
    help="Pending GPU-seconds of pods that select no node with a price, which no cost includes.",
    labels=("tier", "occupying_tier", "cause"),
    rows=gpu_seconds(Total.PENDING_UNPRICED),
    reference_only=True,
)

REASON_PODS = Metric[Snapshot](
    name="gputally_pending_reason_pods",
    kind=MetricType.GAUGE,
    help="Pending pods by the reason why they wait.",
    labels=("tier", "reason"),
    rows=reason_pods,
)

REASON_GPUS = Metric[Snapshot](
    name="gputally_pending_reason_gpus",
    kind=MetricType.GAUGE,
    help="GPUs requested by pending pods whose wait is charged, by the reason why they wait.",
    labels=("tier", "reason"),
    rows=reason_gpus,
)

NOT_CHARGED = Metric[Snapshot](
    name="gputally_wait_not_charged_pods",
    kind=MetricType.GAUGE,
    help="Pods, pending or not created, whose wait is not charged: they request more GPUs than any node ever had "
    "(impossible), their workload more than the cluster ever had (above_limit), or older workloads of their namespace "
    "a hundred times as many (namespace_limit); a ceiling counts instead where it is higher.",
    labels=("reason",),
    rows=not_charged,
    reference_only=True,
)

FINDING_PODS = Metric[Snapshot](
    name="gputally_pending_finding_pods",
    kind=MetricType.GAUGE,
    help="Pending pods that others should not precede: inversion, starvation, or outranked by pods of lower priority.",
    labels=("tier", "finding"),
    rows=finding_pods,
)

PARTIAL_GANGS = Metric[Snapshot](
    name="gputally_partial_gangs",
    kind=MetricType.GAUGE,
    help="Gangs of any framework of which some pods hold GPUs while others are not bound.",
    labels=("tier",),
    rows=partial_gangs,
)

PARTIAL_GANG_GPUS = Metric[Snapshot](
    name="gputally_partial_gang_gpus",
    kind=MetricType.GAUGE,
    help="GPUs that partial gangs hold.",
    labels=("tier",),
    rows=partial_gang_gpus,
)

PARTIAL_GANG_OLDEST = Metric[Snapshot](
    name="gputally_partial_gang_oldest_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="When the partial gang that has held GPUs for the longest time had its first pod bound; no row without one.",
    labels=("tier",),
    rows=oldest_partial_gang,
)

DEADLOCKED_GANGS = Metric[Snapshot](
    name="gputally_deadlocked_gangs",
    kind=MetricType.GAUGE,
    help="Partial gangs that wait for each other: each would fit if another one gave back its GPUs.",
    labels=(),
    rows=deadlocked_gangs,
)

NOT_COMPARED_GANGS = Metric[Snapshot](
    name="gputally_partial_gangs_not_compared",
    kind=MetricType.GAUGE,
    help="Partial gangs that are not checked for deadlocks: why they wait is not known (unknown), or the most that are "
    "checked, of their tenant or of all, are older (limit).",
    labels=("reason",),
    rows=not_compared,
    reference_only=True,
)

FITTING_PODS = Metric[Snapshot](
    name="gputally_fitting_pods",
    kind=MetricType.GAUGE,
    help="Pods of so many GPUs that would fit now, without preemption, with 1 CPU and 1 GiB for each GPU.",
    labels=("gpu_model", "pool", "gpus"),
    rows=fitting_pods,
)

STRANDED_GPUS = Metric[Snapshot](
    name="gputally_stranded_gpus",
    kind=MetricType.GAUGE,
    help="Free GPUs that nothing could use which waits or has run in the last week, since CPU, memory or pods per node "
    "are used up, their node is cordoned, not ready or being removed (not_ready), or too few are free (fragment).",
    labels=("gpu_model", "pool", "reason"),
    rows=stranded_gpus,
)

JOB_NODES = Metric[Snapshot](
    name="gputally_job_nodes",
    kind=MetricType.GAUGE,
    help="Nodes that the running pods of jobs occupy, of jobs with several pods of equal requests on nodes of one GPU "
    "model.",
    labels=("tier",),
    rows=job_nodes(0),
)

JOB_NODES_NEEDED = Metric[Snapshot](
    name="gputally_job_nodes_needed",
    kind=MetricType.GAUGE,
    help="The smallest number of such nodes that would hold the pods of each of these jobs, if the nodes were empty.",
    labels=("tier",),
    rows=job_nodes(1),
)

METRICS = (
    PENDING_GPU_SECONDS,
    PENDING_COST,
    PENDING_UNPRICED,
    REASON_PODS,
    REASON_GPUS,
    NOT_CHARGED,
    FINDING_PODS,
    PARTIAL_GANGS,
    PARTIAL_GANG_GPUS,
    PARTIAL_GANG_OLDEST,
    DEADLOCKED_GANGS,
    NOT_COMPARED_GANGS,
    FITTING_PODS,
    STRANDED_GPUS,
    JOB_NODES,
    JOB_NODES_NEEDED,
)
