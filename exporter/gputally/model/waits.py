"""Waits for GPUs, of pods and of workloads whose pods do not exist, and what the time is charged to."""

from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.model.kube.meta import Owner
from gputally.model.needs import Needs, QuotaState
from gputally.model.price import Price, PriceRange
from gputally.model.verdicts import Reason

NOBODY: Final = "nobody"
"""The exported occupying tier of what is charged to no pod."""
UNKNOWN_TIER = "unknown"
"""The tier of a workload whose template cannot be read."""


class WaitCause(StrEnum):
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
    """The pod's gang is incomplete."""
    GATES = "gates"
    """The pod has scheduling gates."""
    VICTIMS_STOPPING = "victims_stopping"
    """The pods that it preempted are stopping."""
    OTHER = "other"
    """Anything else: the time that the scheduler takes, taints, claims, or what is not known."""


CAUSE_OF: Final = dict.fromkeys(Reason, WaitCause.OTHER) | {
    Reason.GATED: WaitCause.GATES,
    Reason.QUEUED: WaitCause.QUOTA,
    Reason.QUOTA_NEVER: WaitCause.QUOTA,
    Reason.QUOTA: WaitCause.QUOTA,
    Reason.GANG: WaitCause.GANG,
    Reason.VICTIMS_STOPPING: WaitCause.VICTIMS_STOPPING,
    Reason.IMPOSSIBLE: WaitCause.OTHER,
    Reason.OTHER_RESOURCE: WaitCause.CPU_OR_MEMORY,
    Reason.FRAGMENTED: WaitCause.FRAGMENTATION,
    Reason.INVERSION: WaitCause.NOT_PREEMPTIBLE,
    Reason.NEVER_PREEMPTS: WaitCause.NOT_PREEMPTIBLE,
    Reason.CAPACITY: WaitCause.CAPACITY,
    Reason.PREEMPTING: WaitCause.CAPACITY,
}
"""The cause of each reason; the pods that occupy the node may change it."""


class Uncharged(StrEnum):
    """Why the wait of a pod is not charged."""

    IMPOSSIBLE = "impossible"
    """The pod requests more GPUs than any node ever had, and than are configured as possible."""
    ABOVE_LIMIT = "above_limit"
    """The workload lacks pods with more GPUs than the cluster ever had, and than are configured as possible."""
    NAMESPACE_LIMIT = "namespace_limit"
    """The workloads of its namespace that lacked pods before it lack a hundred times as many GPUs."""


class Occupant(NamedTuple):
    """Who holds what a pod waits for: the tier and tenant of these pods."""

    tier: str
    tenant: str


class PendingSegment(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A segment of a pod's pending time, charged alike from `from_us` until `to_us`, None while it lasts.

    `tier` and `tenant` are those of the waiting pod, `occupant` of the pods that hold what it waits for, if any do.
    `shown` are the exported tiers of both. `quantity` is µGPU, 0 of an impossible request, of which `occupied` are
    charged to the occupant, None for all of them. `price` is the lowest of the nodes that the pod selects, None
    without one, and `highest` the highest, None if all are equal. `awaits_price`: it is not found out yet, and will
    count for all of the time.
    """

    reason: Reason
    cause: WaitCause
    tier: str
    tenant: str
    quantity: int
    from_us: int
    to_us: int | None = None
    occupant: Occupant | None = None
    shown: tuple[str, str]
    price: Price | None = None
    occupied: int | None = None
    highest: Price | None = None
    awaits_price: bool = False

    @property
    def prices(self) -> PriceRange:
        """What a GPU-hour may cost."""
        return PriceRange(self.price, self.highest)

    @property
    def by_occupant(self) -> int:
        """µGPU that are charged to the occupant."""
        if self.occupant is None:
            return 0
        return self.quantity if self.occupied is None else self.occupied

    @property
    def charges(self) -> tuple[tuple[tuple[str, str, str], int], ...]:
        """The exported waiting tier, occupying tier and cause, with the µGPU that are charged so."""
        (tier, by), cause, occupied = self.shown, self.cause.value, self.by_occupant
        if occupied in (0, self.quantity):
            return (((tier, by, cause), self.quantity),)
        return ((tier, by, cause), occupied), ((tier, NOBODY, cause), self.quantity - occupied)

    def equals_but_for_time(self, other: "PendingSegment") -> bool:
        """Whether both are the same wait at different times."""
        return replace(self, from_us=other.from_us, to_us=other.to_us) == other


class PendingHistory(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The latest segments of one pod, in order and without gaps; `holders` are the UIDs that it is charged to now."""

    uid: str
    namespace: str
    name: str
    waits: tuple[PendingSegment, ...] = ()
    holders: tuple[str, ...] = ()


class PendingSegmentRow(Struct, frozen=True, kw_only=True, gc=False):
    """One segment of a pod, as a ledger keeps it."""

    uid: str
    namespace: str
    name: str
    wait: PendingSegment


def key_of(namespace: str, uid: str) -> str:
    """The key of a workload; a namespace has no slash."""
    return f"{namespace}/{uid}"


class UncreatedPodsSegment(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
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

    def equals_but_for_time(self, other: "UncreatedPodsSegment") -> bool:
        """Whether both are the same wait at different times."""
        return replace(self, from_us=other.from_us, to_us=other.to_us) == other


class UncreatedWorkload(Struct, frozen=True, kw_only=True, gc=False):
    """A workload that lacks `pods` pods, each of `quantity` µGPU of `gpu_model`, "" for none in particular.

    `owner` would create them, for the job of `job_kind` and `job`. `reason` has held since `since_us`. `quota` is the
    one that refuses a pod. `text` is what the API server answered, or of a queued workload its queue. Without its
    template, all of it follows from an Event: `class_name` is None, and there are at least `pods`. `quantity` is 0 if
    nothing says what they request. `needs` are what decides on which nodes such a pod could run, None if unknown.
    `uncharged_pods` of them are not charged, for the reason `uncharged`, None if there are none.
    """

    owner: Owner
    job_kind: str
    job: str
    tier: str
    class_name: str | None
    pods: int
    quantity: int
    since_us: int
    reason: Reason
    text: str
    uncharged_pods: int = 0
    uncharged: Uncharged | None = None
    quota: QuotaState | None = None
    gpu_model: str = ""
    needs: Needs | None = None
    labels: tuple[tuple[str, str], ...] = ()
    tenant: str = ""
    prices: PriceRange = PriceRange()

    @property
    def is_at_least(self) -> bool:
        """Whether it may lack more pods than are known."""
        return self.class_name is None

    @property
    def whole(self) -> int:
        """µGPU of all pods that it lacks."""
        return self.pods * self.quantity

    @property
    def charged_pods(self) -> int:
        """The pods for which the wait is charged."""
        return self.pods - self.uncharged_pods

    @property
    def charged(self) -> int:
        """µGPU of the pods that are charged."""
        return self.charged_pods * self.quantity
