"""PodDisruptionBudgets, many and as large as the API server stores, of which a reader needs a few bytes."""

from labs.hostile.tenant import Tenant
from tests.cluster.manifests import Json, pod_disruption_budget

NAME = "budgets"
SMALL = 600
"""More than are kept of a namespace."""
LARGE = 60
VALUES = 45_000


async def attack(tenant: Tenant) -> None:
    """Create budgets with selectors of 0.9 MB, and hundreds that select other tenants' labels."""
    for _ in tenant.many(LARGE):
        await tenant.create(NAME, _large(tenant.name("large"), tenant.target.namespace))
    for _ in tenant.many(SMALL):
        labels = {"app": "honest"}
        made = pod_disruption_budget(tenant.name("small"), tenant.target.namespace, labels=labels, min_available=1)
        await tenant.create(NAME, made)


def _large(name: str, namespace: str) -> Json:
    made = pod_disruption_budget(name, namespace, labels={}, min_available=1)
    values = [f"{name}-{number:06}" for number in range(VALUES)]
    expression = {"key": "app", "operator": "In", "values": values}
    return {**made, "spec": made["spec"] | {"selector": {"matchExpressions": [expression]}}}
