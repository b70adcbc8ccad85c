"""Prices and what they are looked up by."""

from decimal import Decimal
from enum import StrEnum

from msgspec import Struct


class Purchase(StrEnum):
    """How the node was bought; prices differ by it."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVED = "reserved"


class Basis(StrEnum):
    """What a GPU-hour's price includes: the whole node's cost, or the GPU alone (3 to 6 times less)."""

    NODE = "node"
    GPU = "gpu"


class Asset(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, cache_hash=True):
    """What a price rule can match of a node. `labels` holds only the labels that rules name."""

    instance_type: str = ""
    gpu_model: str = ""
    pool: str = ""
    purchase: Purchase = Purchase.ON_DEMAND
    labels: tuple[tuple[str, str], ...] = ()


class Price(Struct, frozen=True, kw_only=True, gc=False, cache_hash=True):
    """One rated price of one GPU-hour.

    `rate` is `per_gpu_hour` as an exact integer of 10^-12 currency units. `key` names the rule, its
    date, purchase option and tier inside the book of that digest, so that a bill can be traced back.
    """

    key: str
    currency: str
    per_gpu_hour: Decimal
    rate: int
    basis: Basis
    purchase: Purchase

    def cost(self, gpu_time: int) -> int:
        """What GPU-time (µs·µGPU) costs, exactly; COST_UNIT of it are one unit of the currency.

        It is linear: sums, and lines a + b·t, of GPU-time at one price may be multiplied as a whole.
        """
        return gpu_time * self.rate
