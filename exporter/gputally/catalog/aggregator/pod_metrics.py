"""Metrics by pod and by node, which `/metrics/pods` serves.

Their number grows with the fleet, so they are not part of `/metrics`.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from gputally.accounting.fleet.active_pods import PENDING, Active, ActiveNode, ActivePod
from gputally.accounting.jobs.cost import JobCostsNow
from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.node_record import CapacityState
from gputally.model.units import COST_UNIT, GPU, US_PER_SECOND

MOST_JOBS: Final = 1000
"""Jobs with series of their own."""


class PodsView(Struct, frozen=True):
    """What the row functions read."""

    pods: Sequence[ActivePod]
    nodes: Sequence[ActiveNode]
    costs: JobCostsNow | None = None


def view_of(active: Active) -> PodsView:
    """Derives the pods once for all metrics; takes some 50 ms for 20,000 pods, so run it in a thread."""
    return PodsView(active.pods(), active.nodes, active.costs)


def pod_info(view: PodsView) -> Iterator[Row]:
    """A row for each pod; node is empty while it is pending."""
    for pod in view.pods:
        yield Row((pod.namespace, pod.name, *pod.shown[:2], pod.job_kind, pod.job, pod.node), 1)


def pod_gpus(view: PodsView) -> Iterator[Row]:
    """A row for each pod, with the GPUs that it holds or requests."""
    for pod in view.pods:
        yield Row((pod.namespace, pod.name, *pod.shown, pod.state), pod.quantity / GPU)


def pod_pending(view: PodsView) -> Iterator[Row]:
    """A row for each pending pod."""
    pending = (pod for pod in view.pods if pod.state == PENDING)
    return (Row((pod.namespace, pod.name, *pod.shown[:2]), pod.since_us / US_PER_SECOND) for pod in pending)


def node_gpus(view: PodsView) -> Iterator[Row]:
    """Rows for the allocated and free GPUs of each node, and for other states that any of its GPUs has."""
    for node in view.nodes:
        parts = {CapacityState.ALLOCATED.value: 0, CapacityState.FREE.value: 0} | dict(node.parts)
        parts.pop(CapacityState.OVERCOMMITTED, None)
        for state, quantity in parts.items():
            yield Row((node.name, node.gpu_model, node.pool, state), quantity / GPU)


def node_overcommitted(view: PodsView) -> Iterator[Row]:
    """A row only for nodes that have some."""
    for node in view.nodes:
        if quantity := dict(node.parts).get(CapacityState.OVERCOMMITTED, 0):
            yield Row((node.name, node.gpu_model, node.pool), quantity / GPU)


def job_costs(view: PodsView) -> Iterator[Row]:
    """A row for each of the most expensive jobs, if the costs of jobs are exported."""
    if view.costs:
        yield from (Row(labels, cost / COST_UNIT) for labels, cost in view.costs.top(MOST_JOBS).items())


POD_INFO = Metric[PodsView](
    name="gputally_pod_info",
    kind=MetricType.INFO,
    help="Pods that hold GPUs or wait for them: join container series by namespace and pod to add tier and tenant.",
    labels=("namespace", "pod", "tier", "tenant", "job_kind", "job_name", "node"),
    rows=pod_info,
)

POD_GPUS = Metric[PodsView](
    name="gputally_pod_gpus",
    kind=MetricType.GAUGE,
    help="GPUs that a pod holds, or requests while it is pending, including fractions.",
    labels=("namespace", "pod", "tier", "tenant", "gpu_model", "state"),
    rows=pod_gpus,
)

POD_PENDING = Metric[PodsView](
    name="gputally_pod_pending_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Creation time of a pending pod.",
    labels=("namespace", "pod", "tier", "tenant"),
    rows=pod_pending,
)

NODE_GPUS = Metric[PodsView](
    name="gputally_node_gpus",
    kind=MetricType.GAUGE,
    help="GPUs of a node by current state.",
    labels=("node", "gpu_model", "pool", "state"),
    rows=node_gpus,
)

NODE_OVERCOMMITTED = Metric[PodsView](
    name="gputally_node_overcommitted_gpus",
    kind=MetricType.GAUGE,
    help="GPUs allocated to pods beyond the GPUs of a node; no series for other nodes.",
    labels=("node", "gpu_model", "pool"),
    rows=node_overcommitted,
)

JOB_COST = Metric[PodsView](
    name="training_job_cost_usd",
    kind=MetricType.GAUGE,
    help="Cost so far of each job that has pods or had them in the last 24 hours, with --metrics.training-job-cost.",
    labels=("job_name", "team", "gpu_type", "namespace"),
    rows=job_costs,
    reference_only=True,
)

METRICS = (POD_INFO, POD_GPUS, POD_PENDING, NODE_GPUS, NODE_OVERCOMMITTED, JOB_COST)
