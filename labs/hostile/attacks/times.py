"""Times and priorities that a pod may choose, at and beyond their limits."""

import asyncio

from labs.hostile.tenant import Tenant
from tests.cluster.manifests import Json

GRACE, PRIORITIES = "grace", "priorities"
SECONDS = (0, 1, 2**31 - 1, 2**31, 10**10, 10**12, 10**15, 2**62, 2**63 - 1, -1)
BOUND_BY_THEN_S = 4
"""An unbound pod is deleted at once, whatever its grace."""
CLASSES = ("urgent", "batch", "system-node-critical", "system-cluster-critical", "invented", "../../x", "U" * 253)


async def grace(tenant: Tenant) -> None:
    """Pods with a GPU that take for ever to be deleted, by what they say or by what the request says."""
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
    """Every class that there may be, and numbers without a class; the pods wait, so that they push nobody out."""
    for _ in tenant.many(4):
        for name in CLASSES:
            await tenant.create(PRIORITIES, tenant.pod("mighty", priorityClassName=name))
        for number in (2**31 - 1, 10**9, -(2**31)):
            await tenant.create(PRIORITIES, tenant.pod("mighty", priority=number))


def _with(pod: Json, **spec: object) -> Json:
    return {**pod, "spec": pod["spec"] | spec}
