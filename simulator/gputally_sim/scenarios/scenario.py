"""The scenarios by name."""

from collections.abc import Callable

from gputally_sim.api.registry import Registry
from gputally_sim.scenarios.fleet import EIGHT_GPU_NODES, ONE_GPU_NODES, THREE_MODELS, Fleet
from gputally_sim.scenarios.mixed_tiers import MixedTiers
from gputally_sim.scenarios.tenant_quotas import TenantQuotas
from gputally_sim.scenarios.waiting_pods import WaitingPods

Scenario = Callable[[Registry, int, Fleet | None], None]
"""Starts a scenario now, with the registry, the seed, and a fleet (None for the scenario's default)."""


def mixed_tiers(registry: Registry, seed: int, fleet: Fleet | None = None) -> None:
    """S1: inference by day and training by night in five tiers."""
    MixedTiers(registry, seed, fleet or ONE_GPU_NODES).begin()


def tenant_quotas(registry: Registry, seed: int, fleet: Fleet | None = None) -> None:
    """S2: tenants with quotas, whole-node training next to notebooks, in four tiers."""
    TenantQuotas(registry, seed, fleet or EIGHT_GPU_NODES).begin()


def waiting_pods(registry: Registry, seed: int, fleet: Fleet | None = None) -> None:  # noqa: ARG001 - see `Scenario`
    """Waits: pods that wait for different reasons, for as long as it runs."""
    WaitingPods(registry, fleet or THREE_MODELS).begin()


SCENARIOS: dict[str, Scenario] = {"s1": mixed_tiers, "s2": tenant_quotas, "waits": waiting_pods}
