"""User-settable times and priorities, at and beyond their limits."""

import asyncio

from labs.hostile.tenant import Tenant
from tests.cluster.manifests import Json

GRACE, PRIORITIES = "grace", "priorities"
SECONDS = (0, 1, 2**31 - 1, 2**31, 10**10, 10**12, 10**15, 2**62, 2**63 - 1, -1)
BOUND_BY_THEN_S = 4
"""Time for pods to be bound; an unbound pod is deleted at once, regardless of its grace period."""
CLASSES = ("urgent", "batch", "system-node-critical", "system-cluster-critical", "invented", "../../x", "U" * 253)


async def grace(tenant: Tenant) -> None:
    """Delete pods that have a GPU with extreme grace periods, set in the pod or in the request."""
    for _ in tenant.many(4):
        alive: list[tuple[Json, int | None]] = []
        for seconds in SECONDS:
            alive.append((_with(tenant.running_pod("graceful"), terminationGracePeriodSeconds=seconds), None))
            alive.append((tenant.running_pod("graceful"), seconds))
            await tenant.create(GRACE, _with(tenant.pod("deadline"), activeDeadlineSeconds=seconds))
        alive = [(pod, grace) for pod, grace in alive if await tenant.create(GRACE, pod)]
        await asyncio.sleep(BOUND_BY_THEN_S)
        for pod, grace in alive:
            await tenant.delete(GRACE, pod, grace_seconds=grace)


async def priorities(tenant: Tenant) -> None:
    """Create pods with all kinds of classes and priorities; they stay pending, so that they preempt nothing."""
    for _ in tenant.many(4):
        for name in CLASSES:
            await tenant.create(PRIORITIES, tenant.pod("mighty", priorityClassName=name))
        for number in (2**31 - 1, 10**9, -(2**31)):
            await tenant.create(PRIORITIES, tenant.pod("mighty", priority=number))


def _with(pod: Json, **spec: object) -> Json:
    return {**pod, "spec": pod["spec"] | spec}
