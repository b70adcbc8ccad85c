"""Prices and their lookup keys."""

from collections.abc import Iterable
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

JOB_COST_CURRENCY: Final = "USD"
"""The currency of the exported cost of training jobs, whose metric has it in its name."""


class Purchase(StrEnum):
    """The purchase option of a node, which affects its price."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVED = "reserved"


class Basis(StrEnum):
    """What a GPU-hour's price includes: the whole node's cost, or the GPU alone (3 to 6 times less)."""

    NODE = "node"
    GPU = "gpu"


class Asset(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, cache_hash=True):
    """The properties of a node that price rules can match. `labels` contains only the labels that rules name."""

    instance_type: str = ""
    gpu_model: str = ""
    pool: str = ""
    purchase: Purchase = Purchase.ON_DEMAND
    labels: tuple[tuple[str, str], ...] = ()


class Price(Struct, frozen=True, kw_only=True, gc=False, cache_hash=True):
    """The price of one GPU-hour.

    `rate` is `per_gpu_hour` as an exact integer of 10^-12 currency units. `key` names the rule, its date,
    purchase option and tier, and the digest of the price book, so that a bill can be traced to its rule.
    """

    key: str
    currency: str
    per_gpu_hour: Decimal
    rate: int
    basis: Basis
    purchase: Purchase

    def cost(self, gpu_time: int) -> int:
        """The exact cost of GPU-time (µs·µGPU); COST_UNIT is one unit of the currency.

        It is linear: it also applies to sums and to lines a + b·t of GPU-time at one price.
        """
        return gpu_time * self.rate


class PriceRange(NamedTuple):
    """The prices that a GPU-hour may have: `highest` is None if all are equal, and `lowest` without any price."""

    lowest: Price | None = None
    highest: Price | None = None


def range_of(prices: Iterable[Price]) -> PriceRange:
    """The lowest and the highest of some prices; of equal ones the first by key."""
    by_rate = sorted(prices, key=lambda each: (each.rate, each.key))
    if not by_rate:
        return PriceRange()
    lowest, highest = by_rate[0], by_rate[-1]
    return PriceRange(lowest, highest if highest.rate != lowest.rate else None)
