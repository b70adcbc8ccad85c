"""The whole catalog, in the order it is exposed and documented."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gputally.accounting.snapshot import Snapshot
from gputally.catalog.agent.node import NODE_GROUPS
from gputally.catalog.aggregator import agents, allocation, books, capacity, health, pending, preemption, prices, usage
from gputally.catalog.metric import Metric

FLEET: Final[tuple[Metric[Snapshot], ...]] = (
    *allocation.METRICS,
    *usage.METRICS,
    *capacity.METRICS,
    *pending.METRICS,
    *preemption.METRICS,
    *prices.METRICS,
    *books.METRICS,
)
"""What the fleet did: rows from a Snapshot."""
HEALTH: Final = (*health.METRICS, *agents.METRICS)
"""How the exporter itself does: rows from a Health."""
GROUPS: Final[Mapping[str, Sequence[Metric[Any]]]] = {
    "Allocation": allocation.METRICS,
    "Usage": usage.METRICS,
    "Capacity": capacity.METRICS,
    "Pending": pending.METRICS,
    "Preemption": preemption.METRICS,
    "Prices": prices.METRICS,
    "Books": books.METRICS,
    "Exporter health": HEALTH,
    **NODE_GROUPS,
}
