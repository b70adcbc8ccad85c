"""What decides about a waiting pod besides the nodes."""

from enum import StrEnum

from msgspec import Struct


class GangState(Struct, frozen=True, kw_only=True, gc=False):
    """The gang of a waiting pod: `least` must run at once, `members` exist, and `bound` of them hold resources."""

    name: str
    least: int
    members: int
    bound: int


class QuotaState(Struct, frozen=True, kw_only=True, gc=False):
    """A quota that limits the pod's resource `what`: it admits `hard`, of which `used` are used; the pod needs more."""

    name: str
    what: str
    hard: int
    used: int


class Knowledge(StrEnum):
    """Whether the watches that a verdict needs have complete lists."""

    COMPLETE = "complete"
    GPUS_ONLY = "gpus_only"
    """Pods without GPUs are not all known, so that CPU and memory are not."""


class Situation(Struct, frozen=True, kw_only=True, gc=False):
    """The circumstances of a waiting pod. `text` is the scheduler's message in its condition PodScheduled.

    `has_scheduler` says whether its scheduler was ever seen to work. `nominated_node` is where room is made for it.
    `open_claims` are its ResourceClaims without an allocation; `queue` says what its queue system waits for.
    `is_serving` says whether its tier serves users.
    """

    has_scheduler: bool = True
    knowledge: Knowledge = Knowledge.COMPLETE
    gang: GangState | None = None
    quota: QuotaState | None = None
    queue: str = ""
    open_claims: tuple[str, ...] = ()
    nominated_node: str = ""
    text: str = ""
    is_serving: bool = False
