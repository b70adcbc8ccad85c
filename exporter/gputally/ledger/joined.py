"""A ledger of imported jobs and that of a cluster, read as one."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from gputally.ledger.closed_period import ClosedPeriod
from gputally.ledger.preemption_records import LostTime, NodeBinding, PendingDeliveries, VictimRecords
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import (
    JOB,
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
    Records,
    SegmentRecord,
    WaitRecord,
    Window,
)
from gputally.model.disruptions import CAUSES, Cause, VictimRecord
from gputally.model.lost_work import LostWork
from gputally.model.price import Price
from gputally.model.unaccounted import UnaccountedDay
from gputally.model.usage import AssignmentHour, UnallocatedHour

_Key = tuple[tuple[str, ...], Price | None, int]
"""Labels, price and period."""


class JoinedReader:
    """See `LedgerReader`: `history` counts up to the accounting start of `live`, so that nothing counts twice.

    The readers belong to the caller, who also closes them.
    """

    def __init__(self, *, history: LedgerReader, live: LedgerReader) -> None:
        self._history = history
        self._live = live

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Nothing to close."""

    def state(self) -> LedgerState:
        """See `LedgerReader.state`: that of the cluster, from the first imported job on."""
        live, history = self._live.state(), self._history.state()
        later = {each: live.records_from_us(each) for each in (Records.DISRUPTIONS, Records.WAITS)}
        if Records.PODS in live.later:
            later[Records.PODS] = live.later[Records.PODS]
        return replace(
            live, accounting_start_us=min(live.accounting_start_us, history.accounting_start_us), later=later
        )

    def allocations(self, window: Window) -> Iterator[AllocationRecord]:
        """See `LedgerReader.allocations`."""
        return chain.from_iterable(reader.allocations(part) for reader, part in self._parts(window))

    def allocation(self, pod_uid: str) -> AllocationRecord | None:
        """See `LedgerReader.allocation`; imported jobs have UIDs of their own."""
        return self._live.allocation(pod_uid) or self._history.allocation(pod_uid)

    def segments(self, window: Window) -> Iterator[SegmentRecord]:
        """See `LedgerReader.segments`."""
        return chain.from_iterable(reader.segments(part) for reader, part in self._parts(window))

    def last_segment(self, namespace: str, name: str) -> SegmentRecord | None:
        """See `LedgerReader.last_segment`."""
        return self._live.last_segment(namespace, name) or self._history.last_segment(namespace, name)

    def allocated(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[AllocatedTime]:
        """See `LedgerReader.allocated`; what both ledgers have is not added up."""
        return [each for reader, part in self._parts(window) for each in reader.allocated(part, by, cuts=cuts)]

    def allocated_with_jobs(
        self, window: Window, by: Sequence[str], *, jobs_by: Sequence[str], cuts: Sequence[int] = ()
    ) -> tuple[list[AllocatedTime], list[JobSet]]:
        """See `LedgerReader.allocated_with_jobs`; jobs are compared by name, since numbers differ between ledgers."""
        numbers: dict[tuple[str, ...], int] = {}
        sets: dict[_Key, set[int]] = {}
        for each in self.allocated(window, (*jobs_by, *JOB), cuts=cuts):
            labels, job = each.labels[: len(jobs_by)], each.labels[len(jobs_by) :]
            sets.setdefault((labels, each.price, each.period), set()).add(numbers.setdefault(job, len(numbers)))
        times, waits = list[AllocatedTime](), defaultdict[_Key, list[int]](lambda: [0, 0])
        for reader, part in self._parts(window):
            some, own = reader.allocated_with_jobs(part, by, jobs_by=jobs_by, cuts=cuts)
            times += some
            for one in own:
                found = waits[one.labels, one.price, one.period]
                found[:] = found[0] + one.bound, found[1] + one.wait_us
        return times, [JobSet(*key[:2], jobs, key[2], *waits[key]) for key, jobs in sets.items()]

    def measured(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[MeasuredTime]:
        """See `LedgerReader.measured`; what both ledgers have is not added up."""
        return [each for reader, part in self._parts(window) for each in reader.measured(part, by, cuts=cuts)]

    def lost(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[LostTime]:
        """See `LedgerReader.lost`; imported jobs lost nothing that is known."""
        return [each for reader, part in self._parts(window) for each in reader.lost(part, by, cuts=cuts)]

    def usage(self, window: Window) -> Iterator[AssignmentHour]:
        """See `LedgerReader.usage`."""
        return self._live.usage(window)

    def unallocated_usage(self, window: Window) -> Iterator[UnallocatedHour]:
        """See `LedgerReader.unallocated_usage`."""
        return self._live.unallocated_usage(window)

    def capacity(self, window: Window) -> Iterator[CapacityRecord]:
        """See `LedgerReader.capacity`."""
        return self._live.capacity(window)

    def allocated_steps(self, window: Window) -> Iterator[NodeSteps]:
        """See `LedgerReader.allocated_steps`; imported jobs have no nodes with capacity."""
        return self._live.allocated_steps(window)

    def preemptions(self, window: Window) -> Iterator[VictimRecord]:
        """See `LedgerReader.preemptions`."""
        return self._live.preemptions(window)

    def disruptions(
        self, window: Window, *, causes: Collection[Cause] = CAUSES, of_job: tuple[str, str] = ("", "")
    ) -> Iterator[VictimRecord]:
        """See `LedgerReader.disruptions`."""
        return self._live.disruptions(window, causes=causes, of_job=of_job)

    def priority_classes(self, window: Window) -> list[PriorityClassRecord]:
        """See `LedgerReader.priority_classes`."""
        return self._live.priority_classes(window)

    def lost_work(self, window: Window, *, causes: Collection[Cause] = CAUSES) -> dict[str, LostWork]:
        """See `LedgerReader.lost_work`."""
        return self._live.lost_work(window, causes=causes)

    def pending_deliveries(self, *, after: str, limit: int) -> PendingDeliveries:
        """See `LedgerReader.pending_deliveries`."""
        return self._live.pending_deliveries(after=after, limit=limit)

    def victims(self, job_preemptions: Sequence[str]) -> VictimRecords:
        """See `LedgerReader.victims`."""
        return self._live.victims(job_preemptions)

    def bindings(self, window: Window, node_uids: Sequence[str]) -> Iterator[NodeBinding]:
        """See `LedgerReader.bindings`."""
        return self._live.bindings(window, node_uids)

    def node_ends(self, node_uids: Sequence[str]) -> dict[str, int]:
        """See `LedgerReader.node_ends`."""
        return self._live.node_ends(node_uids)

    def waits(self, window: Window, *, pod_uid: str = "", named: tuple[str, str] = ("", "")) -> Iterator[WaitRecord]:
        """See `LedgerReader.waits`; nothing is known of the waits of imported jobs."""
        return self._live.waits(window, pod_uid=pod_uid, named=named)

    def pending_times(self, window: Window) -> Iterator[PendingTime]:
        """See `LedgerReader.pending_times`; nothing is known of the waits of imported jobs."""
        return self._live.pending_times(window)

    def progress(self, window: Window) -> list[ReachedProgress]:
        """See `LedgerReader.progress`; an imported job may have begun before the window."""
        is_all = window.start_us <= self.state().accounting_start_us
        found = self._live.progress(window)
        return [replace(each, is_whole=each.is_whole and is_all) for each in found]

    def ended_in_gaps(self, window: Window) -> Iterator[GapSegment]:
        """See `LedgerReader.ended_in_gaps`; imported jobs first."""
        return chain.from_iterable(reader.ended_in_gaps(part) for reader, part in self._parts(window))

    def gaps(self, window: Window) -> Iterator[ObservationGap]:
        """See `LedgerReader.gaps`."""
        return self._live.gaps(window)

    def unaccounted(self, window: Window) -> list[UnaccountedDay]:
        """See `LedgerReader.unaccounted`; nothing is known of the time of imported jobs."""
        return self._live.unaccounted(window)

    def tenants_named(self, column: str, glob: str) -> set[str]:
        """See `LedgerReader.tenants_named`."""
        return self._live.tenants_named(column, glob) | self._history.tenants_named(column, glob)

    def closed_periods(self) -> list[ClosedPeriod]:
        """See `LedgerReader.closed_periods`; imported jobs are never closed."""
        return self._live.closed_periods()

    def _parts(self, window: Window) -> Iterator[tuple[LedgerReader, Window]]:
        """The parts of the window before and after the accounting start of the cluster."""
        start_us = self._live.state().accounting_start_us
        if window.start_us < start_us:
            yield self._history, Window(window.start_us, min(window.end_us, start_us))
        if window.end_us > start_us:
            yield self._live, Window(max(window.start_us, start_us), window.end_us)
