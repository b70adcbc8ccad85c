"""Pods that set nodeName to nodes of others and to nonexistent nodes, and request more than is available."""

from labs.hostile.tenant import Tenant, asking, gpus
from tests.cluster.manifests import Json, conduct

NAME = "placement"
AMOUNTS = (
    "1000000000",
    str(2**62),
    str(2**63 - 1),
    "1e18",
    "9E",
    "8Ei",
    "1000000000k",
    "12e6",
    "8",
    "0",
    "1500m",
    "0.5",
    "-1",
    "1e30",
    "1e-9",
)
NOT_STARTED_BY_KWOK = conduct(start_after="2h")
"""A kubelet would reject such a pod; see `rejecting_kubelet`."""


async def attack(tenant: Tenant) -> None:
    """Create pods with every amount on every kind of node; half of them are deleted before they are rejected."""
    for number in tenant.many(30):
        for amount in AMOUNTS:
            await _place(tenant, _placed(tenant, asking(tenant.pod("placed"), **gpus(amount)), number), number)
        await _place(tenant, _placed(tenant, _summed(tenant), number), number)


async def _place(tenant: Tenant, pod: Json, number: int) -> None:
    if await tenant.create(NAME, pod) and number % 2:
        await tenant.delete(NAME, pod)


def _placed(tenant: Tenant, pod: Json, number: int) -> Json:
    node = tenant.target.foreign_node if number % 3 else f"invented-{number}"
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeSelector"} | {"nodeName": node}
    return {**pod, "metadata": pod["metadata"] | {"annotations": NOT_STARTED_BY_KWOK}, "spec": spec}


def _summed(tenant: Tenant) -> Json:
    """A pod whose total request exceeds 64 bits."""
    pod = asking(tenant.pod("summed"), **gpus(str(2**62)))
    [container] = pod["spec"]["containers"]
    containers = [container | {"name": f"c{number}"} for number in range(20)]
    sidecars = [container | {"name": f"s{number}", "restartPolicy": "Always"} for number in range(5)]
    return {**pod, "spec": pod["spec"] | {"containers": containers, "initContainers": sidecars}}
