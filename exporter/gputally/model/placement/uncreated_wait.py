"""The wait of a workload for pods that do not exist."""

from msgspec import Struct
from msgspec.structs import replace

from gputally.model.placement.verdict import Reason
from gputally.model.placement.wait import WaitCause
from gputally.model.price import Price, PriceRange


def key_of(namespace: str, uid: str) -> str:
    """The key of a workload; a namespace has no slash."""
    return f"{namespace}/{uid}"


class UncreatedWait(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A time without changes in which a workload lacked `pods` pods, of `quantity` µGPU each; `to_us` None: it lasts.

    `uid`, `kind` and `name` are those of the object that would create the pods, for the job of `job_kind` and `job`; of
    a workload with several sets of pods, each has its own `uid`. `is_queued`: a queue has not admitted them.
    `is_at_least`: only an Event is known, so that it may have lacked more pods. `shown` is the exported tier; `price`
    is the lowest of the nodes that the pods select, None without one, and `highest` the highest, None if all are equal.
    `awaits_price`: it is not found out yet, and will count for all of the time.
    """

    namespace: str
    uid: str
    kind: str
    name: str
    job_kind: str
    job: str
    tier: str
    tenant: str
    pods: int
    quantity: int
    reason: Reason
    cause: WaitCause
    is_queued: bool = False
    is_at_least: bool = False
    from_us: int
    to_us: int | None = None
    shown: str
    price: Price | None = None
    highest: Price | None = None
    awaits_price: bool = False

    @property
    def key(self) -> str:
        """Identifies the workload."""
        return key_of(self.namespace, self.uid)

    @property
    def labels(self) -> tuple[str, str]:
        """The exported tier, and the cause."""
        return self.shown, self.cause.value

    @property
    def prices(self) -> PriceRange:
        """What a GPU-hour may cost."""
        return PriceRange(self.price, self.highest)

    @property
    def whole(self) -> int:
        """µGPU of all pods that it lacks."""
        return self.pods * self.quantity

    def equals_but_for_time(self, other: "UncreatedWait") -> bool:
        """Whether both are the same wait at different times."""
        return replace(self, from_us=other.from_us, to_us=other.to_us) == other
