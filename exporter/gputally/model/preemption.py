"""A preemption: who lost GPUs to whom, and when its parts happened."""

from msgspec import Struct


class Preemptor(Struct, frozen=True, kw_only=True, gc=False):
    """The pod an Event names as the cause, with the tier it has or had; "" while that is unknown."""

    uid: str
    namespace: str
    name: str
    tier: str = ""
    tenant: str = ""


class Preemption(Struct, frozen=True, kw_only=True, gc=False):
    """One victim's preemption: decided (condition set), requested (deletion), noticed by us; times in µs.

    `quantity` is what the victim held, in µGPU. `counted` is the (victim tier, preemptor tier) it was
    counted under, None while the preemptor is still awaited.
    """

    victim_uid: str
    victim_namespace: str
    victim_name: str
    victim_tier: str
    victim_tenant: str
    node: str
    quantity: int
    decided_us: int
    requested_us: int | None
    released_us: int | None = None
    noticed_us: int
    preemptor: Preemptor | None = None
    counted: tuple[str, str] | None = None
