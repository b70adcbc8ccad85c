"""The workloads that lack pods at one instant, for a thread to describe."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from gputally.model.placement.needs import Needs
from gputally.model.placement.uncreated_workload import UncreatedWorkload
from gputally.model.price import PriceRange

Labels = tuple[tuple[str, str], ...]


class Workloads(NamedTuple):
    """Workloads, tenants by namespace and labels, and prices by needs and tier. Everything is immutable."""

    known: tuple[UncreatedWorkload, ...] = ()
    tenants: Mapping[tuple[str, Labels], str] = {}
    prices: Mapping[tuple[Needs | None, str], PriceRange] = {}

    def described(self) -> list[UncreatedWorkload]:
        """With their tenants and prices, the oldest first; at the end those of which no request is known."""
        found = [
            replace(
                each,
                tenant=self.tenants[each.owner.namespace, each.labels],
                prices=self.prices[each.needs, each.tier],
            )
            for each in self.known
        ]
        return sorted(
            found, key=lambda each: (not each.quantity, each.since_us, each.owner.namespace, each.owner.reference.uid)
        )
