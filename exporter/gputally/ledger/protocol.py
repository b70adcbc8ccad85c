"""What a ledger does, whatever keeps it: one process writes it, any may read it meanwhile."""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from gputally.accounting.changes import Changes, Saved
from gputally.ledger.records import (
    AllocatedTime,
    AllocationRecord,
    CapacityRecord,
    LedgerState,
    ObservationGap,
    PreemptionRecord,
    SegmentRecord,
    Window,
)
from gputally.model.measured.usage_record import AssignmentHour, UnallocatedHour

Line = tuple[int, int]
"""GPU-time (µs·µGPU) as a + b·t."""


class Ledger(Protocol):
    """Durable allocations and working state. Its calls block; they raise LedgerError."""

    def __enter__(self) -> Self:
        """The ledger itself, open and owned."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Give the ledger back; it can be opened again."""

    def bind(self, cluster: str) -> None:
        """Tie the ledger to a cluster (a UID that never changes): watched through another, all its pods would vanish.

        Raises: LedgerError when it is tied to another one.
        """

    def saved(self, *, now_us: int) -> Saved:
        """The state an earlier process left; books opened at `now_us` if there is none."""

    def write(self, changes: Changes) -> Line | None:
        """Keep all of `changes` or none of them; repeating the same changes is harmless.

        Returns: the live line of `changes` minus what the ledger's own segments add up to, which must be (0, 0).
        Raises: LedgerUnwritable when it cannot be written now; the same changes may be written later.
        """

    def check(self) -> Iterator[None]:
        """Look through all that is kept, what was written last first, a little at each step; the ledger may be written.

        Each step may be taken by another thread. Raises: LedgerDamaged, LedgerUnwritable when it cannot be read now.
        """


class LedgerReader(Protocol):
    """Reads a ledger that is written meanwhile, in any process: it locks nothing and writes nothing.

    Its calls block; they raise LedgerError. What is long is read in many short transactions: of an allocation that is
    revised meanwhile either revision is told, whole. What has not ended is told of up to `state().accounted_us`.
    """

    def __enter__(self) -> Self:
        """The reader itself, open."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close it."""

    def state(self) -> LedgerState:
        """Whose ledger it is, and up to when all is accounted."""

    def allocations(self, window: Window) -> Iterator[AllocationRecord]:
        """Allocations that have a part in the window, as they are known now, by pod UID."""

    def segments(self, window: Window) -> Iterator[SegmentRecord]:
        """The parts of segments that lie in the window, by pod UID and start; each has an end."""

    def allocated(self, window: Window, by: Sequence[str]) -> list[AllocatedTime]:
        """The GPU-time of those parts, exactly, by price and the dimensions `by`, in their order.

        Raises: ValueError for a dimension that is none of DIMENSIONS.
        """

    def usage(self, window: Window) -> Iterator[AssignmentHour]:
        """What agents measured of pods, for the hours that begin in the window by the clocks of their nodes.

        An hour is the least that is kept, and is never cut: take windows of whole hours.
        """

    def unallocated_usage(self, window: Window) -> Iterator[UnallocatedHour]:
        """The same of what nobody held."""

    def capacity(self, window: Window) -> Iterator[CapacityRecord]:
        """What nodes offered in the window, by node UID and start.

        Of the time in which a node went unseen, it lasted as long as pods are known to have held some of it.
        """

    def preemptions(self, window: Window) -> Iterator[PreemptionRecord]:
        """Preemptions that were decided in the window, in their order."""

    def gaps(self, window: Window) -> Iterator[ObservationGap]:
        """The parts of observation gaps that lie in the window, by subject, then UID and start."""
