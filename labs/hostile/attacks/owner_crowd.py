"""Thousands of unique owners, of invented and real kinds, on a few pods that change owners."""

from labs.hostile.tenant import Tenant, owned, owner

NAME = "owner crowd"
KINDS = (
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "CronJob"),
    ("v1", "ConfigMap"),
    ("hostile.example/v1", "Thing"),
)


async def attack(tenant: Tenant) -> None:
    """Change the owners of a few pods repeatedly; the garbage collector looks up only real kinds."""
    pods = [tenant.pod("adopted") for _ in range(8)]
    for pod in pods:
        await tenant.create(NAME, pod)
    for number in tenant.many(2000):
        version, kind = KINDS[number % len(KINDS)] if number % 2 else (f"g{number}.hostile.example/v1", f"Kind{number}")
        reference = owner(kind, f"none-{number}", f"crowd-{number}", api_version=version)
        pod = pods[number % len(pods)]
        if not await tenant.patch(NAME, pod, {"metadata": {"ownerReferences": [reference]}}):
            pods[number % len(pods)] = owned(tenant.pod("adopted"), reference)
            await tenant.create(NAME, pods[number % len(pods)])
