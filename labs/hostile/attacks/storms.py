"""Pods created and deleted at a high rate, directly and by Jobs."""

import asyncio

from labs.hostile.attacks.labels import labelled
from labs.hostile.tenant import Tenant, owned, owner
from tests.cluster.manifests import Json, job

PODS, JOBS = "storm of pods", "Jobs"
MOST_PODS = 150
"""Maximum pods per Job; the namespace has no quota, but the test machine must not be overloaded."""
ENDLESS = 2**31 - 1


async def pods(tenant: Tenant) -> None:
    """Create and delete pods with unique owners and teams; some with finalizers or a grace period."""
    for number in tenant.many(1000):
        pod = labelled(tenant.pod("storm"), number)
        pod = owned(pod, owner("Gust", pod["metadata"]["name"], f"storm-{number}", api_version="hostile.example/v1"))
        if number % 10 == 0:
            pod["metadata"]["finalizers"] = ["hostile.example/stays"]
        if await tenant.create(PODS, pod):
            await tenant.delete(PODS, pod, grace_seconds=30 if number % 3 else 0)
        if number % 20 == 0:
            await tenant.patch(PODS, pod, {"metadata": {"finalizers": []}})


async def jobs(tenant: Tenant) -> None:
    """Create endless Jobs with many pods and delete them, and suspended Jobs with maximum parallelism."""
    for number in tenant.many(4):
        manifest = _of(tenant, number)
        if await tenant.create(JOBS, manifest):
            await asyncio.sleep(3)
            await tenant.delete(JOBS, manifest, grace_seconds=None)
    for _ in tenant.many(20):
        await tenant.create(JOBS, job(tenant.pod("endless"), parallelism=ENDLESS, suspend=True))


def _of(tenant: Tenant, number: int) -> Json:
    pod = labelled(tenant.pod("horde"), number)
    return job(pod, parallelism=len(tenant.many(MOST_PODS)), backoffLimit=ENDLESS)
