"""The workloads that lack pods at one instant, for a thread to describe."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from gputally.accounting.uncreated.lacking import Key
from gputally.model.price import PriceRange
from gputally.model.waits import UncreatedWait, UncreatedWorkload, key_of

Labels = tuple[tuple[str, str], ...]


class Workloads(NamedTuple):
    """Workloads, tenants by namespace and labels, and what is charged, by key. Nobody changes it."""

    known: Mapping[Key, UncreatedWorkload] = {}
    tenants: Mapping[tuple[str, Labels], str] = {}
    waits: Mapping[str, UncreatedWait] = {}

    def described(self) -> list[UncreatedWorkload]:
        """With their tenants and charged prices, the oldest first; at the end those of which no request is known."""
        found = [
            replace(each, tenant=self.tenants[each.owner.namespace, each.labels], prices=self._prices(key))
            for key, each in self.known.items()
        ]
        return sorted(
            found, key=lambda each: (not each.quantity, each.since_us, each.owner.namespace, each.owner.reference.uid)
        )

    def _prices(self, key: Key) -> PriceRange:
        wait = self.waits.get(key_of(*key))
        return wait.prices if wait else PriceRange()
