"""Who holds or wants which GPUs now."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from gputally.accounting.fleet.active_pods import PENDING, Active, ActiveNode, ActivePod
from gputally.accounting.waiting.packing import Job
from gputally.accounting.watched.unaccounted_pods import UnaccountedNow
from gputally.answers.parameters import unknown_values
from gputally.model.allocation import State
from gputally.model.api.allocations import (
    AllocationsDocument,
    JobPlacement,
    NodeCapacity,
    PodAllocation,
    UnaccountedCount,
)
from gputally.model.unaccounted import WORDS
from gputally.model.units import GPU, PICO, to_datetime

if TYPE_CHECKING:
    from gputally.model.price import Price

FILTERS: Final = ("namespace", "tier", "tenant", "node", "state")
"""Query parameters: only pods with one of the given values."""


class AllocationsNow(NamedTuple):
    """The active pods and nodes at `at_us`, and the currency of their prices, empty without a price book."""

    active: Active
    at_us: int
    currency: str


def document(
    now: AllocationsNow, filters: Mapping[str, Collection[str]], *, tenants: Collection[str] | None
) -> AllocationsDocument:
    """The document with the pods that match all `filters`; `tenants` None for a user who may see all."""
    seen = [pod for pod in now.active.pods() if tenants is None or pod.tenant in tenants]
    pods = [pod for pod in seen if all(getattr(pod, name) in values for name, values in filters.items())]
    return AllocationsDocument(
        at=to_datetime(now.at_us),
        currency=now.currency,
        pods=[_pod(pod) for pod in pods],
        nodes=None if tenants is not None else [_node(each) for each in now.active.nodes],
        jobs=list(_jobs(now.active, {(pod.namespace, pod.job_kind, pod.job): None for pod in pods})),
        unaccounted=None if tenants is not None else list(_unaccounted(now.active.unaccounted)),
        unknown=[] if pods else unknown_values(filters, _known(seen)),
    )


def _known(seen: Collection[ActivePod]) -> dict[str, set[str]]:
    known = {name: {getattr(pod, name) for pod in seen} for name in FILTERS}
    return known | {"state": {PENDING, *State}}


def _unaccounted(now: UnaccountedNow) -> Iterator[UnaccountedCount]:
    for reason, pods in now.pods.items():
        if pods:
            quantity = now.quantities.get(reason)
            gpus = None if quantity is None else quantity / GPU
            yield UnaccountedCount(reason=reason.value, text=WORDS[reason], pods=pods, gpus=gpus)


def _jobs(active: Active, chosen: Iterable[Job]) -> Iterator[JobPlacement]:
    for job in chosen:
        if found := active.packing.get(job):
            namespace, kind, name = job
            yield JobPlacement(
                namespace=namespace, job_kind=kind, job=name, nodes=found.used, nodes_needed=found.needed
            )


def _pod(pod: ActivePod) -> PodAllocation:
    return PodAllocation(
        namespace=pod.namespace,
        pod=pod.name,
        uid=pod.uid,
        tier=pod.tier,
        tenant=pod.tenant,
        job_kind=pod.job_kind,
        job=pod.job,
        node=pod.node,
        pool=pod.pool,
        gpu_model=pod.gpu_model,
        state=pod.state,
        gpus=pod.quantity / GPU,
        since=to_datetime(pod.since_us),
        cost_per_hour=cost_per_hour(pod.prices),
    )


def cost_per_hour(prices: "Collection[tuple[int, Price | None]]") -> str | None:
    """The exact cost of µGPU with their prices per hour; None if any of them has no price, or there are no GPUs."""
    if not prices:
        return None
    total = 0
    for quantity, price in prices:
        if price is None:
            return None
        total += quantity * price.rate
    return hourly_text(total)


def hourly_text(cost: int) -> str:
    """An exact cost per hour; `cost` is the sum of the rates times µGPU."""
    return f"{(Decimal(cost) / (GPU * PICO)).normalize():f}"


def _node(node: ActiveNode) -> NodeCapacity:
    gpus = {state: quantity / GPU for state, quantity in node.parts}
    return NodeCapacity(node=node.name, gpu_model=node.gpu_model, pool=node.pool, gpus=gpus)
