"""The record of a wait for GPUs, independent of its storage."""

from msgspec import Struct

from gputally.model.placement.verdict import Reason
from gputally.model.placement.wait import WaitCause


class WaitRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A part of a pod's wait for GPUs without changes; `to_us` is None while it lasts.

    The occupying tier and tenant are "" if no pod held what it waited for. `price_key` is that of the GPU model that
    the pod selects, None if it has no price.
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
