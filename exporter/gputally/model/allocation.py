"""What a pod has of a resource, cut into segments of constant state, quantity, labels and price."""

from enum import StrEnum

from msgspec import Struct

from gputally.model.price import Asset, Price


class State(StrEnum):
    """A partition of allocated time."""

    STARTING = "starting"
    """Bound, no container running yet."""
    RUNNING = "running"
    TERMINATING = "terminating"
    """Deletion requested, not yet released."""


class End(StrEnum):
    """What an allocation's end rests on, the surest first."""

    FINISHED = "finished"
    """The last `finishedAt` of a terminal pod of which every container that ran has one."""
    REJECTED = "rejected"
    """Refused by the kubelet: it never held anything."""
    TERMINAL = "terminal"
    """The first observed terminal phase, when a container that ran has no time."""
    DELETED = "deleted"
    """The DELETED event of a pod that never became terminal (forced deletion)."""
    VANISHED = "vanished"
    """Missing from a listing: it ended somewhere in its blind interval."""
    NODE = "node"
    """The end of its node, of which nothing dated tells that the pod outlived it."""


class Ending(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What a pod itself tells of its end: that lies in [from_us, to_us], one instant where it is seen live.

    Of one that finished, `from_us` is when by the clock of its node, and `to_us` when that was told first; it had its
    devices until `held_us` at least, by the API server's clock.
    """

    by: End
    from_us: int
    to_us: int
    held_us: int = 0


class Terms(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What applies to an allocation from `from_us` on; a later entry replaces it.

    `quantities` are µGPU by resource name. `asset` is what its price is looked up by. `shown` is the exported
    (tier, tenant, gpu_model), where limits made any of them `other`.
    """

    from_us: int
    tier: str
    tenant: str
    queue: str = ""
    gpu_model: str
    pool: str
    asset: Asset
    quantities: tuple[tuple[str, int], ...]
    shown: tuple[str, str, str] | None = None

    @property
    def labels(self) -> tuple[str, str, str]:
        """The exported (tier, tenant, gpu_model)."""
        return self.shown or (self.tier, self.tenant, self.gpu_model)


class Segment(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A stretch of one allocation during which nothing about it changes; `end_us` None while it lasts.

    `quantity` is in µGPU. `price` None means unpriced. `labels` are the exported
    (tier, tenant, gpu_model, state), bounded, where the plain fields keep the full names.
    """

    resource: str
    start_us: int
    end_us: int | None
    state: State
    quantity: int
    tier: str
    tenant: str
    queue: str
    gpu_model: str
    pool: str
    price: Price | None
    labels: tuple[str, str, str, str]


class Gap(Struct, frozen=True, kw_only=True, gc=False):
    """An allocation ended somewhere in [from_us, to_us]; it is charged up to `from_us`."""

    from_us: int
    to_us: int
