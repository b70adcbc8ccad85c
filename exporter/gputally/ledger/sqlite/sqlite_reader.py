"""The reader of a ledger in one SQLite file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

from gputally.errors import DetailRolledUp, LedgerError
from gputally.ledger.closed_period import ClosedPeriod
from gputally.ledger.records import (
    DIMENSIONS,
    MEASURED_DIMENSIONS,
    AllocatedTime,
    AllocationRecord,
    CapacityRecord,
    DisruptionRecord,
    GapSegment,
    GapSubject,
    JobSet,
    LedgerState,
    MeasuredTime,
    NodeSteps,
    ObservationGap,
    PreemptionRecord,
    ReachedProgress,
    SegmentRecord,
    Window,
)
from gputally.ledger.sqlite import queries, usage_rows
from gputally.ledger.sqlite.closed_rows import read_closed
from gputally.ledger.sqlite.schema import connect_reading
from gputally.ledger.sqlite.segment_rows import Row
from gputally.ledger.sqlite.sqlite_errors import converted_errors
from gputally.ledger.sqlite.sums.allocated_time import ReadPlan, Sums, SumsBy, read_sums
from gputally.ledger.sqlite.sums.daily_sums import expect_whole_days
from gputally.ledger.sqlite.sums.gap_segments import read_ended_in_gaps
from gputally.ledger.sqlite.sums.lost_work_rows import LOST_WORK, lost_work_of
from gputally.ledger.sqlite.sums.measured_time import read_measured
from gputally.ledger.sqlite.sums.names import Key
from gputally.ledger.sqlite.sums.offered_capacity import read_capacity, read_steps
from gputally.ledger.sqlite.sums.page_readers import page_readers
from gputally.ledger.sqlite.sums.reached_progress import read_progress
from gputally.ledger.sqlite.sums.wait_rows import read_waits
from gputally.ledger.wait_record import WaitRecord
from gputally.model.measured.usage_record import AssignmentHour, UnallocatedHour
from gputally.model.units import US_PER_DAY, to_datetime
from gputally.model.work.lost_work import LostWork

Found = TypeVar("Found")
_LAST: Final = b""
"""Sorts after every text."""


class _Page(NamedTuple):
    """Pods whose UID is in (after, upto]."""

    after: str
    upto: str | bytes


class SqliteLedgerReader:
    """See `LedgerReader`. It never changes the file, even if this process is killed."""

    page_pods = 5_000
    """Pods read in one transaction: a longer one would prevent SQLite from reusing the WAL."""

    def __init__(self, path: Path, connection: Connection | None = None) -> None:
        """Read `path`, through `connection` if it is open already.

        Raises: LedgerError if it is not a ledger with the current schema.
        """
        self.path = path
        self._connection = connection or connect_reading(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._connection.close()

    def state(self) -> LedgerState:
        """See `LedgerReader.state`. Raises: LedgerError before the start of accounting."""
        meta: dict[str, str] = dict(self._rows(queries.META))
        if "accounting_start_us" not in meta:
            raise LedgerError(f"{self.path}: contains no accounting yet; wait until its aggregator is ready")
        accounted_us = max(int(meta[key]) for key in ("accounting_start_us", "at_us", "evaluated_us") if key in meta)
        return LedgerState(
            cluster=meta.get("cluster"),
            accounting_start_us=int(meta["accounting_start_us"]),
            accounted_us=accounted_us,
            detail_start_us=int(meta["detail_start_us"]) if "detail_start_us" in meta else None,
        )

    def allocations(self, window: Window) -> Iterator[AllocationRecord]:
        """See `LedgerReader.allocations`."""
        bounds = self._detailed(window)
        for page in self._pages():
            latest = {row[0]: row for row in self._rows(queries.ALLOCATIONS, bounds, page)}
            yield from map(queries.allocation, latest.values())
        self._detailed(window)

    def allocation(self, pod_uid: str) -> AllocationRecord | None:
        """See `LedgerReader.allocation`."""
        revisions = self._rows(queries.ALLOCATION, {"uid": pod_uid})
        return queries.allocation(revisions[-1]) if revisions else None

    def segments(self, window: Window) -> Iterator[SegmentRecord]:
        """See `LedgerReader.segments`."""
        bounds = self._detailed(window)
        for page in self._pages():
            yield from map(queries.segment, self._rows(queries.SEGMENTS, bounds, page))
        self._detailed(window)

    def allocated(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[AllocatedTime]:
        """See `LedgerReader.allocated`."""
        _expect(by, DIMENSIONS)
        return _allocated(self._sums(window, SumsBy(by), cuts)[0])

    def allocated_with_jobs(
        self, window: Window, by: Sequence[str], *, jobs_by: Sequence[str], cuts: Sequence[int] = ()
    ) -> tuple[list[AllocatedTime], list[JobSet]]:
        """See `LedgerReader.allocated_with_jobs`."""
        _expect(by, DIMENSIONS)
        _expect(jobs_by, by)
        sums, sets = self._sums(window, SumsBy(by, jobs_by), cuts)
        return _allocated(sums), sets

    def measured(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[MeasuredTime]:
        """See `LedgerReader.measured`."""
        _expect(by, MEASURED_DIMENSIONS)
        bounds, plan = self._bounds(window), ReadPlan(cuts, self.page_pods)

        def read() -> dict[Key, list[int]]:
            expect_whole_days(self._rows, bounds, by, cuts)
            return read_measured(self._rows, bounds, by, plan)

        found = [
            MeasuredTime(labels, price, measured, used, burst, energy, period)
            for (labels, price, period), (measured, used, burst, energy) in self._undisturbed(read).items()
            if measured or used or energy
        ]
        return sorted(found, key=_by_labels)

    def usage(self, window: Window) -> Iterator[AssignmentHour]:
        """See `LedgerReader.usage`."""
        self._detailed(window)
        for start_us in self._hours(window):
            yield from map(usage_rows.assignment_hour, self._rows(usage_rows.ASSIGNED_IN_HOUR, {"start": start_us}))

    def unallocated_usage(self, window: Window) -> Iterator[UnallocatedHour]:
        """See `LedgerReader.unallocated_usage`."""
        if any(us % US_PER_DAY for us in window):
            self._detailed(window)
        return map(usage_rows.unallocated_hour, self._rows(usage_rows.UNALLOCATED_IN_WINDOW, self._bounds(window)))

    def capacity(self, window: Window) -> Iterator[CapacityRecord]:
        """See `LedgerReader.capacity`."""
        bounds = self._bounds(window)
        return read_capacity(self._rows, bounds, self._undisturbed(lambda: self._last_allocated(bounds)))

    def allocated_steps(self, window: Window) -> Iterator[NodeSteps]:
        """See `LedgerReader.allocated_steps`."""
        bounds = self._bounds(window)
        yield from self._undisturbed(lambda: list(read_steps(self._rows, bounds, self.page_pods)))

    def preemptions(self, window: Window) -> Iterator[PreemptionRecord]:
        """See `LedgerReader.preemptions`."""
        rows = self._rows(queries.PREEMPTIONS, self._bounds(window))
        return (queries.record_of(PreemptionRecord, row) for row in rows)

    def disruptions(self, window: Window) -> Iterator[DisruptionRecord]:
        """See `LedgerReader.disruptions`."""
        rows = self._rows(queries.DISRUPTIONS, self._bounds(window))
        return (queries.record_of(DisruptionRecord, row) for row in rows)

    def lost_work(self, window: Window) -> dict[str, LostWork]:
        """See `LedgerReader.lost_work`."""
        return {each.victim_uid: each for each in map(lost_work_of, self._rows(LOST_WORK, self._bounds(window)))}

    def waits(self, window: Window, *, pod_uid: str = "") -> Iterator[WaitRecord]:
        """See `LedgerReader.waits`."""
        return read_waits(self._rows, self._bounds(window), pod_uid)

    def progress(self, window: Window) -> list[ReachedProgress]:
        """See `LedgerReader.progress`."""
        return list(read_progress(self._rows, self._bounds(window)))

    def ended_in_gaps(self, window: Window) -> Iterator[GapSegment]:
        """See `LedgerReader.ended_in_gaps`."""
        self._detailed(window)
        yield from read_ended_in_gaps(self._rows, window, self.page_pods)
        self._detailed(window)

    def gaps(self, window: Window) -> Iterator[ObservationGap]:
        """See `LedgerReader.gaps`."""
        bounds = self._detailed(window)
        yield from (queries.gap(GapSubject.WATCH, row) for row in self._rows(queries.WATCH_GAPS, bounds))
        for page in self._pages():
            for (uid,) in self._rows(queries.ENDED_IN_GAP, bounds, page):
                for row in self._rows(queries.ALLOCATION, {"uid": uid})[-1:]:  # it may just have been rolled up
                    yield from queries.gap_of(queries.allocation(row), window)
        yield from (queries.gap(GapSubject.NODE, row) for row in self._rows(queries.NODE_GAPS, bounds))
        self._detailed(window)

    def closed_periods(self) -> list[ClosedPeriod]:
        """See `LedgerReader.closed_periods`."""
        return read_closed(self._rows)

    def _bounds(self, window: Window) -> dict[str, int]:
        return {"start": window.start_us, "end": window.end_us, "accounted": self.state().accounted_us}

    def _detailed(self, window: Window) -> dict[str, int]:
        """The bounds of a window of which single allocations are known. Raises: DetailRolledUp."""
        detail_us = self.state().detail_start_us
        if detail_us is not None and window.start_us < detail_us:
            raise DetailRolledUp(
                f"single allocations and hours are known only from {to_datetime(detail_us):%Y-%m-%d} UTC on; use a "
                "later period, or a backup from before"
            )
        return self._bounds(window)

    def _sums(self, window: Window, sums_by: SumsBy, cuts: Sequence[int]) -> tuple[Sums, list[JobSet]]:
        bounds, plan = self._bounds(window), ReadPlan(cuts, self.page_pods)

        def read() -> tuple[Sums, list[JobSet]]:
            expect_whole_days(self._rows, bounds, sums_by.by, cuts)
            is_alone = bool(cuts) or self._connection.in_transaction
            with page_readers(self.path, self._rows, is_alone=is_alone) as readers:
                return read_sums(self._rows, bounds, sums_by, plan._replace(readers=readers))

        return self._undisturbed(read)

    def _undisturbed(self, read: Callable[[], Found]) -> Found:
        """The result of a read that sees each allocation once.

        Allocations that are rolled up while their pages are read would count twice or not at all. Then the read is
        repeated in one transaction, at the price of a larger WAL.
        """
        before, found = self._rows(queries.ROLL_UPS), read()
        if self._rows(queries.ROLL_UPS) == before:
            return found
        self._rows("BEGIN")
        try:
            return read()
        finally:
            self._rows("ROLLBACK")

    def _last_allocated(self, bounds: Mapping[str, int]) -> dict[str, int]:
        """The end (µs) of the last allocation on each node that was deleted at an unknown time in the window."""
        ends = dict[str, int]()
        if self._rows(queries.NODE_GAPS, bounds):
            for page in self._pages():
                for uid, end_us in self._rows(queries.LAST_ALLOCATED, bounds, page):
                    ends[uid] = max(end_us, ends.get(uid, 0))
            for uid, end_us in self._rows(queries.LAST_ROLLED_UP, bounds):
                ends[uid] = max(end_us, ends.get(uid, 0))
        return ends

    def _pages(self) -> Iterator[_Page]:
        """Pages of all pods, by UID."""
        after = ""
        while found := self._rows(queries.NEXT_PAGE, {"after": after, "pods": self.page_pods - 1}):
            [(upto,)] = found
            yield _Page(after, upto)
            after = upto
        yield _Page(after, _LAST)

    def _hours(self, window: Window) -> Iterator[int]:
        """The starts of all hours with usage."""
        start_us: int | None = window.start_us - 1
        while start_us is not None:
            [(start_us,)] = self._rows(usage_rows.NEXT_HOUR, {"after": start_us, "end": window.end_us})
            if start_us is not None:
                yield start_us

    def _rows(self, sql: str, bounds: Mapping[str, Any] | None = None, page: _Page | None = None) -> list[Row]:
        """All rows of one statement, which is one transaction."""
        values = {**(bounds or {}), **(page._asdict() if page else {})}
        with converted_errors(self.path):
            return self._connection.execute(sql, values).fetchall()


def _allocated(sums: Sums) -> list[AllocatedTime]:
    found = [
        AllocatedTime(labels=labels, price=price, gpu_time=gpu_time, period=period)
        for (labels, price, period), gpu_time in sums.items()
    ]
    return sorted(found, key=_by_labels)


def _by_labels(found: AllocatedTime | MeasuredTime) -> tuple[Row, str, int]:
    return found.labels, found.price.key if found.price else "", found.period


def _expect(by: Sequence[str], known: Sequence[str]) -> None:
    if unknown := [name for name in by if name not in known]:
        raise ValueError(f"{', '.join(unknown)}: not a dimension of a ledger; use {', '.join(known)}")
