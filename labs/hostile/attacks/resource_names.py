"""Thousands of resource names, most of them similar to GPU resources."""

from labs.hostile.tenant import Tenant, asking

NAME = "resource names"
EACH = 60


async def attack(tenant: Tenant) -> None:
    """Create pending pods, each requesting many resources that no node offers."""
    for number in tenant.many(50):
        names = [name for each in range(EACH // 4) for name in _names(number * EACH + each)]
        await tenant.create(NAME, asking(tenant.pod("named"), **dict.fromkeys(names, "1")))


def _names(number: int) -> tuple[str, ...]:
    return (
        f"nvidia.com/mig-{number % 7 + 1}g.{number}gb",
        f"nvidia.com/gpu-{number}",
        f"amd.com/gpu-{number}",
        f"g{number}.hostile.example/{'n' * 50}",
    )
