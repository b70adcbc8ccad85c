"""What nodes offered, and what it cost."""

from typing import Final

from msgspec import Struct

from gputally.ledger.tables.table import Table


class CapacityRow(Struct, frozen=True):
    """What a node offered from a time on."""

    node_uid: str
    from_us: int
    recorded_us: int
    node: str
    physical: int
    covered: int
    allocatable: int
    ready: bool
    cordoned: bool
    gpu_model: str
    pool: str
    instance_type: str
    purchase: str
    divided: bool
    price_labels: str


CAPACITY: Final = Table("capacity", CapacityRow, key=("node_uid", "from_us"))


class CapacityPriceRow(Struct, frozen=True):
    """What a GPU-hour of capacity costs from a time on, for each set of node properties that price rules match.

    `price_key` is NULL where no price rule matches.
    """

    instance_type: str
    gpu_model: str
    pool: str
    purchase: str
    price_labels: str
    from_us: int
    price_key: str | None


CAPACITY_PRICES: Final = Table(
    "capacity_prices",
    CapacityPriceRow,
    key=("instance_type", "gpu_model", "pool", "purchase", "price_labels", "from_us"),
)


class NodeEndRow(Struct, frozen=True):
    """A node that ended at `gone_us`.

    If no watch observed that, it ceased to exist in [`gone_us`, `gone_by_us`]; else `gone_by_us` is NULL.
    """

    node_uid: str
    node: str
    gone_us: int
    gone_by_us: int | None


NODE_ENDS: Final = Table("node_ends", NodeEndRow, key=("node_uid",))


class ReregistrationRow(Struct, frozen=True):
    """A node that registered again, by machine and name, and which it was before.

    Allocations on that are on this one, too.
    """

    node_uid: str
    continues: str


REREGISTRATIONS: Final = Table("reregistrations", ReregistrationRow, key=("node_uid",))
