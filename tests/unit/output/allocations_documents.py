"""Documents of `/api/v1/allocations` for tests."""

from collections.abc import Sequence
from datetime import UTC, datetime

from gputally.model.api.allocations import (
    AllocationsDocument,
    JobPlacement,
    NodeCapacity,
    PodAllocation,
    UnaccountedCount,
)

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def pod(name: str, gpus: float, *, tier: str = "low", node: str = "n1", cost: str | None = "2.5") -> PodAllocation:
    """A running pod of tenant `ml`; a pending one without a node."""
    return PodAllocation(
        namespace="ml",
        pod=name,
        uid=f"uid-{name}",
        tier=tier,
        tenant="ml",
        job_kind="Job",
        job=name.partition("-")[0],
        node=node,
        pool="",
        gpu_model="H100",
        state="running" if node else "pending",
        gpus=gpus,
        since=NOON,
        cost_per_hour=cost if node else None,
    )


PODS = [
    pod("train-0", 4, cost="10"),
    pod("train-1", 4, node="n2", cost="10.5"),
    pod("serve", 0.25, tier="high"),
    pod("unpriced", 1, tier="high", cost=None),
    pod("wait", 8, tier="top", node=""),
]
NODES = [
    NodeCapacity(node="n1", gpu_model="H100", pool="a", gpus={"allocated": 5.25, "free": 2.75}),
    NodeCapacity(node="n2", gpu_model="H100", pool="a", gpus={"allocated": 4, "cordoned": 4}),
]


def document(
    pods: list[PodAllocation] | None = None,
    nodes: list[NodeCapacity] | None = NODES,
    currency: str = "USD",
    jobs: Sequence[JobPlacement] = (),
    unaccounted: Sequence[UnaccountedCount] = (),
) -> AllocationsDocument:
    found = PODS if pods is None else pods
    return AllocationsDocument(
        at=NOON, currency=currency, pods=found, nodes=nodes, jobs=list(jobs), unaccounted=list(unaccounted)
    )
