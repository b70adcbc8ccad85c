"""Consistency of the accounting, and what it excludes."""

from collections.abc import Iterator

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.totals.total import COSTS, COUNTS, GPU_TIMES
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.catalog.sums import Grouping
from gputally.model.units import COST_UNIT, GPU, GPU_SECOND, US_PER_SECOND


def difference(snapshot: Snapshot) -> Iterator[Row]:
    """One row for each pair of independently kept sums."""
    return (Row((check,), value / GPU_SECOND) for check, value in snapshot.differences.items())


def cost_difference(snapshot: Snapshot) -> Iterator[Row]:
    """One row for each pair of independently kept costs."""
    return (Row((check,), value / COST_UNIT) for check, value in snapshot.cost_differences.items())


def overcount_gpu_seconds(snapshot: Snapshot) -> Iterator[Row]:
    """The overcount of each GPU-second counter, as one sum."""
    return (Row((total.value,), snapshot.totals[total].overcount / GPU_SECOND) for total in GPU_TIMES)


def overcount_events(snapshot: Snapshot) -> Iterator[Row]:
    """The overcount of each counter of events, as one sum."""
    return (Row((total.value,), snapshot.totals[total].overcount) for total in COUNTS)


def overcount_cost(snapshot: Snapshot) -> Iterator[Row]:
    """The overcount of each cost counter, as one sum by currency."""
    for total, by_currency in _BY_CURRENCY.items():
        published = snapshot.totals[total]
        groups = by_currency.of(published.labels)
        for (currency,), overcount in zip(groups.labels, groups.sums(published.overcounts), strict=True):
            yield Row((total.value, currency), overcount / COST_UNIT)


_BY_CURRENCY = {total: Grouping(lambda labels: labels[-1:]) for total in COSTS}


RECONCILIATION_DIFFERENCE = Metric[Snapshot](
    name="gputally_reconciliation_difference_gpu_seconds",
    kind=MetricType.GAUGE,
    help="Difference between two independently kept sums of GPU-seconds, which must be 0.",
    labels=("check",),
    rows=difference,
)

COST_DIFFERENCE = Metric[Snapshot](
    name="gputally_reconciliation_difference_cost",
    kind=MetricType.GAUGE,
    help="Difference between two independently kept sums of costs, which must be 0, in units of the currency.",
    labels=("check",),
    rows=cost_difference,
)

OVERCOUNT_GPU_SECONDS = Metric[Snapshot](
    name="gputally_overcount_gpu_seconds",
    kind=MetricType.GAUGE,
    help="GPU-seconds by which a published counter exceeds the corrected accounting, until later accrual offsets them.",
    labels=("counter",),
    rows=overcount_gpu_seconds,
)

OVERCOUNT_COST = Metric[Snapshot](
    name="gputally_overcount_cost",
    kind=MetricType.GAUGE,
    help="Cost by which a published counter exceeds the corrected accounting, until later accrual offsets it.",
    labels=("counter", "currency"),
    rows=overcount_cost,
)

OVERCOUNT_EVENTS = Metric[Snapshot](
    name="gputally_overcount_events",
    kind=MetricType.GAUGE,
    help="Events by which a published counter exceeds the corrected accounting, such as a preemption that proved to be "
    "none, until later events offset them.",
    labels=("counter",),
    rows=overcount_events,
    reference_only=True,
)

ACCOUNTING_START = Metric[Snapshot](
    name="gputally_accounting_start_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time when accounting started: counters exclude the time before it, the ledger includes it.",
    rows=lambda snapshot: [Row((), snapshot.accounting_start_us / US_PER_SECOND)],
)

PODS = Metric[Snapshot](
    name="gputally_pods",
    kind=MetricType.GAUGE,
    help="Existing pods that request GPUs, including finished pods.",
    rows=lambda snapshot: [Row((), snapshot.pods)],
)

NODES = Metric[Snapshot](
    name="gputally_nodes",
    kind=MetricType.GAUGE,
    help="Existing nodes with GPUs.",
    rows=lambda snapshot: [Row((), snapshot.inventory.nodes)],
)

PODS_WITHOUT_TIER = Metric[Snapshot](
    name="gputally_pods_without_tier",
    kind=MetricType.GAUGE,
    help="Unfinished pods that request GPUs and have no tier.",
    rows=lambda snapshot: [Row((), snapshot.without_tier)],
)

PODS_WITHOUT_TENANT = Metric[Snapshot](
    name="gputally_pods_without_tenant",
    kind=MetricType.GAUGE,
    help="Unfinished pods that request GPUs and have no tenant.",
    rows=lambda snapshot: [Row((), snapshot.without_tenant)],
)

UNACCOUNTED_GPU_PODS = Metric[Snapshot](
    name="gputally_unaccounted_gpu_pods",
    kind=MetricType.GAUGE,
    help="Bound, unfinished pods that request GPUs which are not accounted, by reason; a pod may have several reasons.",
    labels=("reason",),
    rows=lambda snapshot: [Row((reason.value,), pods) for reason, pods in snapshot.unaccounted.pods.items()],
)

UNACCOUNTED_GPUS = Metric[Snapshot](
    name="gputally_unaccounted_gpus",
    kind=MetricType.GAUGE,
    help="GPUs that bound, unfinished pods request and that are not accounted, by reason, for resources that a rule "
    "weighs.",
    labels=("reason",),
    rows=lambda snapshot: [
        Row((reason.value,), quantity / GPU) for reason, quantity in snapshot.unaccounted.quantities.items()
    ],
    reference_only=True,
)

UNKNOWN_DEVICE_NODES = Metric[Snapshot](
    name="gputally_unknown_device_nodes",
    kind=MetricType.GAUGE,
    help="Nodes that offer a device that looks like a GPU and has no resource rule, by resource: the 20 most common "
    "ones, and other.",
    labels=("resource",),
    rows=lambda snapshot: [Row((resource,), nodes) for resource, nodes in snapshot.unknown_offers.items()],
    reference_only=True,
)

PURCHASE_CONFLICTS = Metric[Snapshot](
    name="gputally_purchase_conflict_nodes",
    kind=MetricType.GAUGE,
    help="Nodes with conflicting purchase labels.",
    rows=lambda snapshot: [Row((), snapshot.inventory.purchase_conflicts)],
)

LABEL_CONFLICTS = Metric[Snapshot](
    name="gputally_gpu_label_conflict_nodes",
    kind=MetricType.GAUGE,
    help="Nodes whose GPU labels contradict the units that they offer.",
    labels=("reason",),
    rows=lambda snapshot: [Row((reason.value,), nodes) for reason, nodes in snapshot.inventory.label_conflicts.items()],
)

NODE_CLOCK_SKEW = Metric[Snapshot](
    name="gputally_node_clock_skew_seconds",
    kind=MetricType.GAUGE,
    help="Node clock minus API server clock, measured from the node's newest pods: the 20 largest skews above 2 s.",
    labels=("node",),
    rows=lambda snapshot: [Row((node,), skew_us / US_PER_SECOND) for node, skew_us in snapshot.clock_skews.items()],
)

LABEL_OVERFLOWS = Metric[Snapshot](
    name="gputally_label_overflows_total",
    kind=MetricType.COUNTER,
    help="Times a label value was exported as other because the label's limit was reached.",
    labels=("label",),
    rows=lambda snapshot: [Row((label,), count) for label, count in snapshot.refusals.items()],
)

OBJECTS_BEYOND_LIMITS = Metric[Snapshot](
    name="gputally_objects_beyond_limits_total",
    kind=MetricType.COUNTER,
    help="Times an observed object was not kept because of a limit, of its namespace or of all.",
    labels=("resource",),
    rows=lambda snapshot: [Row((kind.value,), each.count) for kind, each in snapshot.limit_overflow.items()],
)

METRICS = (
    RECONCILIATION_DIFFERENCE,
    COST_DIFFERENCE,
    OVERCOUNT_GPU_SECONDS,
    OVERCOUNT_COST,
    OVERCOUNT_EVENTS,
    ACCOUNTING_START,
    PODS,
    NODES,
    PODS_WITHOUT_TIER,
    PODS_WITHOUT_TENANT,
    UNACCOUNTED_GPU_PODS,
    UNACCOUNTED_GPUS,
    UNKNOWN_DEVICE_NODES,
    PURCHASE_CONFLICTS,
    LABEL_CONFLICTS,
    NODE_CLOCK_SKEW,
    LABEL_OVERFLOWS,
    OBJECTS_BEYOND_LIMITS,
)
