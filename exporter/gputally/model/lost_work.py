"""The work of running pods: up to which checkpoint it is saved, and what of it a disruption destroys."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from gputally.model.price import Price


class CheckpointSource(StrEnum):
    """How the last checkpoint is known."""

    TERMINATION_MESSAGE = "termination-message"
    """A container's termination message states it."""
    ANNOTATION = "annotation"
    """An annotation of the pod states it."""
    SIGTERM = "sigterm"
    """The pod declares that it saves its work on SIGTERM."""
    INTERVAL = "interval"
    """Assumed from a declared interval."""
    START = "start"
    """Not known: all work since the start may be lost."""
    NO_WORK = "no-work"
    """The pod has no work to lose: it serves users, or is declared a placeholder."""


class WorkCheckpoint(Struct, frozen=True, kw_only=True, gc=False):
    """Work up to `at_us` (µs) is saved."""

    at_us: int
    source: CheckpointSource


class PodCheckpoint(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What one pod states about its checkpoints: the latest one, an interval, and whether it saves on SIGTERM.

    `is_placeholder` says that its images are declared to do no work.
    """

    uid: str
    stated: WorkCheckpoint | None = None
    interval_us: int | None = None
    saves_on_sigterm: bool = False
    is_placeholder: bool = False


class WorkSpan(Struct, frozen=True, kw_only=True, gc=False):
    """A part of a pod's running time without changes; `payer` are the exported tier and tenant, `quantity` is µGPU."""

    start_us: int
    end_us: int
    quantity: int
    payer: tuple[str, str]
    price: Price | None


class LostPod(Struct, frozen=True, gc=False):
    """A pod that lost what it did in [from_us, to_us): from its last checkpoint, or its start, to its end."""

    uid: str
    from_us: int
    to_us: int
    basis: CheckpointSource


class LostWork(Struct, frozen=True, kw_only=True, gc=False):
    """The work lost to the disruption of one victim, by it and by the members of its group that restarted with it.

    `gpu_time` and `stalled_gpu_time` are µs·µGPU since the accounting start; `costs` are exact (see `Price.cost`), by
    currency. `checkpoint_us` is that of the victim, and so is `basis`, unless others lost work of which less is known.
    `members` is the number of pods that had work to lose; `pods` are those of a preemption that had run since their
    checkpoint. `at_intervals` is the GPU-time that would have been lost with a
    checkpoint every so many µs. The group stalled while members that stayed waited for the replacement of the victim.
    `is_final` says that what became of the group is known.
    """

    victim_uid: str
    gpu_time: int
    costs: Sequence[tuple[str, int]]
    basis: CheckpointSource
    checkpoint_us: int
    members: int
    pods: Sequence[LostPod]
    stalled_gpu_time: int
    at_intervals: Sequence[tuple[int, int]]
    is_final: bool

    @property
    def is_upper_bound(self) -> bool:
        """Whether less may be lost: no checkpoint is known of a pod that lost work."""
        return self.gpu_time > 0 and self.basis is CheckpointSource.START
