"""Pods and Jobs that wait for more GPUs than exist, and gangs that hold a GPU and wait for ever."""

from labs.hostile.tenant import Tenant, asking, gpus
from tests.cluster.manifests import POOL, Json, conduct, job

ENDLESS, GANGS = "endless waits", "old gangs"
AMOUNTS = ("1000000000", "8", str(2**63 - 1), "256", "257", "1e18")
MOST_PARALLEL = 2**31 - 1
QUEUE = {"kueue.x-k8s.io/queue-name": "hostile"}
OLD_GANGS = 17
"""More than are compared of one tenant."""


async def endless(tenant: Tenant) -> None:
    """Create pending pods of every amount, and suspended Jobs in a queue that want two billion of each.

    They are of the honest tenants' tiers, so their waits are in the same sums.
    """
    for number in tenant.many(100):
        pod = asking(tenant.pod("waits", priorityClassName="batch"), **gpus(AMOUNTS[number % len(AMOUNTS)]))
        await tenant.create(ENDLESS, pod)
        await tenant.create(ENDLESS, _queued({**pod, "spec": pod["spec"] | {"priorityClassName": "urgent"}}))


async def old_gangs(tenant: Tenant) -> None:
    """Create gangs of which one pod holds a GPU, and the other one fits on no node."""
    for number in range(OLD_GANGS):
        labels = {"training.kubeflow.org/job-name": f"old-{number}"}
        holder = tenant.pod("holds", nodeSelector={POOL: tenant.target.own_pool})
        for pod in (holder, asking(tenant.pod("lacks"), **gpus("8"))):
            meta = pod["metadata"] | {"labels": labels, "annotations": conduct(start_after="2h")}
            await tenant.create(GANGS, {**pod, "metadata": meta})


def _queued(pod: Json) -> Json:
    manifest = job(pod, parallelism=MOST_PARALLEL, suspend=True)
    return {**manifest, "metadata": manifest["metadata"] | {"labels": QUEUE}}
