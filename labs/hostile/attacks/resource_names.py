"""Thousands of resource names, most of them similar to GPU resources, and devices that are not accounted."""

from labs.hostile.tenant import Tenant, asking
from tests.cluster.manifests import Json

NAME = "resource names"
EACH = 60


async def attack(tenant: Tenant) -> None:
    """Create pods, each requesting many resources that no node offers.

    Half of them wait; the others set their node, which may be one of others or not exist, and have a claim.
    """
    for number in tenant.many(50):
        names = [name for each in range(EACH // 4) for name in _names(number * EACH + each)]
        pod = asking(tenant.pod("named"), **dict.fromkeys(names, "1"))
        await tenant.create(NAME, _placed(tenant, pod, number) if number % 2 else pod)


def _placed(tenant: Tenant, pod: Json, number: int) -> Json:
    node = tenant.target.foreign_node if number % 3 else f"unheard-{number}"
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": f"gpu-{number}"}]}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeSelector"} | {"nodeName": node}
    return {**pod, "spec": spec | claims}


def _names(number: int) -> tuple[str, ...]:
    return (
        f"nvidia.com/mig-{number % 7 + 1}g.{number}gb",
        f"nvidia.com/gpu-{number}",
        f"deviceclass.resource.kubernetes.io/gpu-{number}",
        f"g{number}.hostile.example/{'n' * 50}",
    )
