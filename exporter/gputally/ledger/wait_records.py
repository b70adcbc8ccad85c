"""The records of waits for GPUs, independent of their storage."""

from typing import NamedTuple

from msgspec import Struct

from gputally.model.price import Price
from gputally.model.verdicts import Reason
from gputally.model.waits import WaitCause


class WaitRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A part of a pod's wait for GPUs without changes; `to_us` is None while it lasts.

    The occupying tier and tenant are "" if no pod held what it waited for; of `quantity`, `occupied` µGPU are charged
    to them, None for all. `price_key` is the lowest price of the nodes that the pod selects, None if they have none,
    and `highest_price_key` the highest, None if all are equal.
    """

    pod_uid: str
    from_us: int
    to_us: int | None
    namespace: str
    name: str
    tier: str
    tenant: str
    quantity: int
    reason: Reason
    cause: WaitCause
    occupying_tier: str
    occupying_tenant: str
    price_key: str | None
    occupied: int | None = None
    highest_price_key: str | None = None


class PendingTime(NamedTuple):
    """A part of a wait without changes, at the lowest price of the nodes that are selected, None without one.

    It is that of one pod; or unless `is_created`, that of a workload for `pods` pods that do not exist, with its UID
    and name, and with `is_at_least` for as many at least. `quantity` is µGPU of one pod, of which
    `occupied` are charged to the occupying tier and tenant. `highest` is the highest price, None if all are equal.
    """

    namespace: str
    uid: str
    from_us: int
    to_us: int | None
    name: str
    tier: str
    tenant: str
    pods: int
    quantity: int
    reason: Reason
    cause: WaitCause
    occupying_tier: str
    occupying_tenant: str
    price: Price | None
    is_created: bool
    is_at_least: bool
    occupied: int
    highest: Price | None
