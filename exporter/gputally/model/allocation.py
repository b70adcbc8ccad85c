"""Allocations of pods, divided into segments of constant state, quantity, labels and price."""

from enum import StrEnum

from msgspec import Struct

from gputally.model.price import Asset, Price


class State(StrEnum):
    """A partition of allocated time."""

    STARTING = "starting"
    """Bound, no container running yet."""
    GANG_WAIT = "gang_wait"
    """Running, while other pods that it can only work together with have not started for the first time."""
    RUNNING = "running"
    TERMINATING = "terminating"
    """Deletion requested, not yet released."""


class End(StrEnum):
    """The evidence of an allocation's end, the most reliable first."""

    FINISHED = "finished"
    """The last `finishedAt` of a terminal pod, if every container that ran has one."""
    REJECTED = "rejected"
    """Rejected by the kubelet: nothing was allocated, unless it had accepted the pod before."""
    TERMINAL = "terminal"
    """The first observed terminal phase, if a container that ran has no `finishedAt`."""
    DELETED = "deleted"
    """The DELETED event of a pod that never became terminal (forced deletion)."""
    VANISHED = "vanished"
    """Missing from a list: it ended within an observation gap."""
    NODE = "node"
    """The end of its node, without a timestamp that shows that the pod outlived it."""


class Ending(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The end of a pod by its own object: in [from_us, to_us], which is one instant if it is observed live.

    For a finished pod, `from_us` is the end by the clock of its node, and `to_us` is when it was first reported; the
    pod had its devices until `held_us` at least, by the API server's clock.
    """

    by: End
    from_us: int
    to_us: int
    held_us: int = 0


class Terms(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The classification of an allocation from `from_us` on; a later entry replaces it.

    `quantities` are µGPU by resource name. `asset` is the key for its price. `shown` is the exported
    (tier, tenant, gpu_model), if limits replaced any of them by `other`.
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
    """A part of one allocation without changes; `end_us` is None while it lasts.

    `quantity` is in µGPU. `price` None means unpriced. `labels` are the exported, limited
    (tier, tenant, gpu_model, state); the other fields contain the full names.
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


class Outcome(StrEnum):
    """What became of a pod that had GPUs, or of its job."""

    RUNNING = "running"
    """The pod or job has not ended yet."""
    SUCCEEDED = "succeeded"
    """All its containers ended with exit code 0, before anyone requested its deletion. A job: it is complete."""
    FAILED = "failed"
    """The pod or job failed by itself, or the kubelet ended the pod, e.g. evicted it."""
    PREEMPTED = "preempted"
    """The scheduler preempted it, whatever its containers made of that."""
    DELETED = "deleted"
    """The pod or job was deleted before it had ended."""
    COMPLETED_EARLY = "completed_early"
    """A job: it is complete, but counts a preempted pod as a success."""
    FAILED_EARLY = "failed_early"
    """A job: it failed only because its pods were preempted."""
    LOST = "lost"
    """The node of the pod is gone."""
    UNKNOWN = "unknown"
    """The pod or job ended while nobody observed it, or before the ledger kept outcomes."""


class Result(Struct, frozen=True, gc=False, omit_defaults=True):
    """The result of a terminal pod by its status.

    `exit_code` is that of the container that failed first; 0 if all succeeded; None if it is not known. `reason` is the
    pod's, else that container's, else that of its disruption. `is_own` says that deletion was not requested before.
    """

    phase: str
    reason: str = ""
    exit_code: int | None = None
    is_own: bool = False
