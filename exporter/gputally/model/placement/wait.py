"""How long pods waited for GPUs, and what the time is charged to."""

from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.model.placement.verdict import Reason


class Cause(StrEnum):
    """What a pending GPU-second is charged to, exactly one for each."""

    CAPACITY = "capacity"
    """Pods that it must leave alone, of higher priority, or pods that it may yet preempt, hold what it needs."""
    NOT_PREEMPTIBLE = "not_preemptible"
    """Pods of lower or equal priority that it may not preempt hold what it needs."""
    IDLE_ALLOCATION = "idle_allocation"
    """Pods that have not used their GPUs lately hold what it needs."""
    FRAGMENTATION = "fragmentation"
    """Enough GPUs are free, but not on one node."""
    CPU_OR_MEMORY = "cpu_or_memory"
    """GPUs are free, but not the CPU, memory, storage or pods per node that it needs with them."""
    QUOTA = "quota"
    """A quota or a queue has not admitted it."""
    GANG = "gang"
    """Its gang is incomplete."""
    GATES = "gates"
    """It has scheduling gates."""
    VICTIMS_STOPPING = "victims_stopping"
    """The pods that it preempted are stopping."""
    OTHER = "other"
    """Anything else, such as the time that the scheduler takes, taints, claims, or not known."""


CAUSE_OF: Final = {
    Reason.GATED: Cause.GATES,
    Reason.QUEUED: Cause.QUOTA,
    Reason.QUOTA_NEVER: Cause.QUOTA,
    Reason.QUOTA: Cause.QUOTA,
    Reason.GANG: Cause.GANG,
    Reason.VICTIMS_STOPPING: Cause.VICTIMS_STOPPING,
    Reason.IMPOSSIBLE: Cause.CAPACITY,
    Reason.OTHER_RESOURCE: Cause.CPU_OR_MEMORY,
    Reason.FRAGMENTED: Cause.FRAGMENTATION,
    Reason.INVERSION: Cause.NOT_PREEMPTIBLE,
    Reason.NEVER_PREEMPTS: Cause.NOT_PREEMPTIBLE,
    Reason.CAPACITY: Cause.CAPACITY,
    Reason.PREEMPTING: Cause.CAPACITY,
}
"""The cause of each reason, `other` where it is missing. Who occupies the node may change it."""


class Occupant(NamedTuple):
    """Who holds what a pod waits for: the tier and tenant of these pods."""

    tier: str
    tenant: str


class Wait(Struct, frozen=True, kw_only=True, gc=False):
    """A part of a pod's wait without changes, from `from_us` until `to_us`, None while it lasts."""

    reason: Reason
    cause: Cause
    from_us: int
    to_us: int | None = None
    occupant: Occupant | None = None
