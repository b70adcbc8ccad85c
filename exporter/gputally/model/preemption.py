"""A preemption: victim, preemptor and the times of its steps."""

from msgspec import Struct


class Preemptor(Struct, frozen=True, kw_only=True, gc=False):
    """The pod that an Event names as the cause, with its last known tier; "" while that is unknown.

    `is_inferred` says that no Event names it: it was the only pod nominated to the victim's node at that time.
    """

    uid: str
    namespace: str
    name: str
    tier: str = ""
    tenant: str = ""
    is_inferred: bool = False


class Preemption(Struct, frozen=True, kw_only=True, gc=False):
    """The preemption of one victim: decided (condition set), requested (deletion), observed by us; times in µs.

    `quantity` is the victim's allocation in µGPU. `counted` is the (victim tier, preemptor tier) under which
    it was counted, None while the preemptor may still become known.
    """

    victim_uid: str
    victim_namespace: str
    victim_name: str
    victim_priority: int = 0
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
