"""The interfaces of a ledger, independent of its storage: one process writes, any process may read concurrently."""

from collections.abc import Collection, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from gputally.ledger.closed_period import ClosedPeriod
from gputally.ledger.preemption_records import LostTime, NodeBinding, PendingDeliveries, VictimRecords
from gputally.ledger.records import (
    AllocatedTime,
    AllocationRecord,
    CapacityRecord,
    GapSegment,
    JobSet,
    LedgerState,
    MeasuredTime,
    NodeSteps,
    ObservationGap,
    PendingTime,
    PriorityClassRecord,
    ReachedProgress,
    SegmentRecord,
    WaitRecord,
    Window,
)
from gputally.model.disruptions import CAUSES, Cause, VictimRecord
from gputally.model.lost_work import LostWork
from gputally.model.unaccounted import UnaccountedDay
from gputally.model.usage import AssignmentHour, UnallocatedHour

if TYPE_CHECKING:  # of the writer alone
    from gputally.accounting.changes import Changes, Saved
    from gputally.accounting.totals.total import Lines

Line = tuple[int, int]
"""GPU-time (µs·µGPU) as a + b·t."""


class Ledger(Protocol):
    """Durable allocations and working state. Its calls block; they raise LedgerError."""

    def __enter__(self) -> Self:
        """The ledger itself, open and owned."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Release the ledger; it can be opened again."""

    def bind(self, cluster: str) -> None:
        """Bind the ledger to a cluster (a UID that never changes): with another cluster, all its pods would disappear.

        Raises: LedgerError if it is bound to another cluster.
        """

    def saved(self, *, now_us: int) -> "Saved":
        """The state that the previous process saved; without one, accounting starts at `now_us`."""

    def write(self, changes: "Changes") -> "Lines":
        """Write all of `changes` or none of them; writing the same changes again has no effect.

        Returns: each of the live sums of `changes` minus that of the ledger's own rows, which must be (0, 0).
        Raises: LedgerUnwritable if the ledger cannot be written now; the same changes may be written later.
        """

    def close_period(self, period: ClosedPeriod) -> None:
        """Append a closed period with its hash, all of it or nothing.

        Raises: LedgerError if it does not follow the last closed period; LedgerUnwritable as `write` does.
        """

    def finish_delivery(self, job_preemption: str, result: str, *, at_us: int) -> None:
        """A webhook has answered: the delivery is not pending any more. A finished one stays as it is.

        Raises: LedgerUnwritable.
        """

    def check(self) -> Iterator[None]:
        """Check the whole ledger in small steps, the newest rows first; writes may continue in between.

        Each step may run in another thread. Raises: LedgerDamaged, LedgerUnwritable if it cannot be read now.
        """

    def roll_up(self, before_us: int) -> Iterator[int]:
        """Leave only daily rows of the allocations that ended before `before_us`, a midnight in UTC; give space back.

        Each step is one small transaction, and must run as `write` does; writes may continue in between. Each sum over
        whole days stays the same. Yields the number of allocations rolled up so far. What may still change stays.

        Raises: LedgerUnwritable; the rest is rolled up by a later call.
        """

    def add_up(self) -> Iterator[int]:
        """Store sums of the allocations that have ended, which let readers answer sooner; no answer depends on them.

        Each step is one small transaction, and must run as `write` does; writes may continue in between. Yields the
        number of allocations added up so far.

        Raises: LedgerUnwritable; the rest is added up by a later call.
        """


class LedgerReader(Protocol):
    """Reads a ledger while any process writes it, without locks and without writes.

    Its calls block; they raise LedgerError. Long reads use many short transactions: an allocation that is revised
    during a read is returned in either revision, complete. Records without an end extend to `state().accounted_us`.

    Of allocations that ended before `state().detail_start_us`, only sums by day may be left. Sums raise DetailRolledUp
    if the window or a cut divides such a day, or by pod; `allocations`, `segments`, `usage`, `ended_in_gaps` and `gaps`
    for a window that starts before.
    """

    def __enter__(self) -> Self:
        """The reader itself, open."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close it."""

    def state(self) -> LedgerState:
        """The cluster of the ledger, and the time up to which it is complete."""

    def allocations(self, window: Window) -> Iterator[AllocationRecord]:
        """Allocations that overlap the window, in their latest revision, by pod UID."""

    def allocation(self, pod_uid: str) -> AllocationRecord | None:
        """The allocation of a pod in its latest revision; None for an unknown pod."""

    def segments(self, window: Window) -> Iterator[SegmentRecord]:
        """Segments clipped to the window, by pod UID and start; each has an end."""

    def last_segment(self, namespace: str, name: str) -> SegmentRecord | None:
        """The last segment of the last pod of a name; it has an end. None if no pod of that name held GPUs."""

    def allocated(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[AllocatedTime]:
        """The exact GPU-time of the clipped segments by price and the dimensions `by`, in this order.

        Ascending `cuts` (µs) inside the window divide it into periods.

        Raises: ValueError for a dimension that is not in DIMENSIONS.
        """

    def allocated_with_jobs(
        self, window: Window, by: Sequence[str], *, jobs_by: Sequence[str], cuts: Sequence[int] = ()
    ) -> tuple[list[AllocatedTime], list[JobSet]]:
        """Like `allocated`, in any order, with the different jobs by the dimensions `jobs_by`, some of `by`."""

    def measured(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[MeasuredTime]:
        """What agents measured for the pods, by price and the dimensions `by`, in this order.

        Usage is stored by the hour, and divided in proportion to time where the window, a period or the labels of a
        pod end. Usage without a known pod is not included.

        Raises: ValueError for a dimension that is not in MEASURED_DIMENSIONS.
        """

    def lost(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[LostTime]:
        """What preemptions destroyed of `allocated` and of `measured`, by price and the dimensions `by`, in this order.

        It belongs to the time in which it was done, whenever the preemption was, and is never more than was measured by
        the same price, dimensions and period. Usage is divided as `measured` divides it.

        Raises: ValueError for a dimension that is not in MEASURED_DIMENSIONS.
        """

    def usage(self, window: Window) -> Iterator[AssignmentHour]:
        """The measured usage of pods, for the hours that begin in the window by the clocks of their nodes.

        An hour is the smallest stored unit and is never clipped: use windows of whole hours.
        """

    def unallocated_usage(self, window: Window) -> Iterator[UnallocatedHour]:
        """The measured usage outside any allocation. What was rolled up is at the first hour of its day (UTC)."""

    def capacity(self, window: Window) -> Iterator[CapacityRecord]:
        """The capacity of nodes in the window, by node UID and start.

        A record ends where the price changes, too. A node that was deleted during an observation gap counts until the
        last known allocation on it.
        """

    def allocated_steps(self, window: Window) -> Iterator[NodeSteps]:
        """What was allocated to the pods of each node in the window, by the UID of the node that they were bound to."""

    def preemptions(self, window: Window) -> Iterator[VictimRecord]:
        """Victims that were preempted, as decided in the window, in chronological order."""

    def disruptions(
        self, window: Window, *, causes: Collection[Cause] = CAUSES, of_job: tuple[str, str] = ("", "")
    ) -> Iterator[VictimRecord]:
        """Pods that lost their GPUs for one of these causes, as decided in the window, in chronological order.

        Those of one job (namespace and name), or of all. Restarts of containers are a cause, too.
        """

    def priority_classes(self, window: Window) -> list[PriorityClassRecord]:
        """The versions of PriorityClasses that were in force in the window, not clipped, by name and start."""

    def lost_work(self, window: Window, *, causes: Collection[Cause] = CAUSES) -> dict[str, LostWork]:
        """The work that disruptions for these causes destroyed, as decided in the window, by UID of the victim."""

    def pending_deliveries(self, *, after: str, limit: int) -> PendingDeliveries:
        """The first `limit` pending deliveries with an ID after this one."""

    def victims(self, job_preemptions: Sequence[str]) -> VictimRecords:
        """All victims of these preemptions of jobs."""

    def bindings(self, window: Window, node_uids: Sequence[str]) -> Iterator[NodeBinding]:
        """The pods that were bound in the window to nodes with these UIDs."""

    def node_ends(self, node_uids: Sequence[str]) -> dict[str, int]:
        """When (µs) those of these nodes that are gone were last observed, by UID."""

    def waits(self, window: Window, *, pod_uid: str = "", named: tuple[str, str] = ("", "")) -> Iterator[WaitRecord]:
        """Waits for GPUs that overlap the window, by begin; not clipped.

        Those of one pod, of all pods that were `named` so (namespace and name), or of all.
        """

    def pending_times(self, window: Window) -> Iterator[PendingTime]:
        """All waits that overlap the window with their prices, not clipped; then those for pods that do not exist.

        Those of one pod, or of one workload, follow each other in chronological order.
        """

    def progress(self, window: Window) -> list[ReachedProgress]:
        """The progress of jobs that stated one, without those that reached it after the window."""

    def ended_in_gaps(self, window: Window) -> Iterator[GapSegment]:
        """All segments of the allocations whose end is in a gap that overlaps the window, by pod UID and start."""

    def gaps(self, window: Window) -> Iterator[ObservationGap]:
        """Observation gaps clipped to the window, by subject, then UID and start."""

    def unaccounted(self, window: Window) -> list[UnaccountedDay]:
        """The most pods at a time that asked for GPUs which were not accounted, for each day (UTC) of the window."""

    def tenants_named(self, column: str, glob: str) -> set[str]:
        """The tenants of all records, of any time and kind, in which the value of a column matches the glob.

        Columns: tier, tenant, queue, gpu_model, pool, resource, namespace, pod, job_kind, job, node, occupying_tier.
        """

    def closed_periods(self) -> list[ClosedPeriod]:
        """The closed periods with their lines, in order. Raises: LedgerDamaged if they cannot be read."""
