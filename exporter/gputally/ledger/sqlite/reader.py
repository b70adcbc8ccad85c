"""The reader of a ledger in one SQLite file, in short transactions; of a large one by several connections at once."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

import msgspec

from gputally.errors import DetailRolledUp, LedgerDamaged, LedgerError
from gputally.ledger.allocated_sums import SumsBy
from gputally.ledger.closed_period import ClosedPeriod
from gputally.ledger.preemption_records import LostTime, NodeBinding, PendingDeliveries, VictimRecords
from gputally.ledger.records import (
    DIMENSIONS,
    MEASURED_DIMENSIONS,
    AllocatedTime,
    AllocationRecord,
    CapacityRecord,
    GapSegment,
    GapSubject,
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
from gputally.ledger.sqlite import allocation_views, capacity, gaps, usage
from gputally.ledger.sqlite.allocated_time import ReadPlan, read_progress, read_sums
from gputally.ledger.sqlite.capacity import read_bindings, read_capacity, read_node_ends, read_steps
from gputally.ledger.sqlite.closed_periods import read_closed
from gputally.ledger.sqlite.daily_sums import expect_whole_days
from gputally.ledger.sqlite.file import connect_reading, reading
from gputally.ledger.sqlite.gaps import read_ended_in_gaps
from gputally.ledger.sqlite.integrity import converted_errors
from gputally.ledger.sqlite.lost_time import read_lost
from gputally.ledger.sqlite.named_tenants import NAMED, tenants_named
from gputally.ledger.sqlite.rows import Row, Rows, record_of
from gputally.ledger.sqlite.segment_pages import last_pod
from gputally.ledger.sqlite.usage import read_measured
from gputally.ledger.sqlite.victims import (
    read_disruptions,
    read_lost_work,
    read_pending,
    read_preemptions,
    read_victims,
)
from gputally.ledger.sqlite.waits import later_records, read_pending_times, read_waits
from gputally.ledger.tables.statements import select
from gputally.ledger.tables.waits import PRIORITY_CLASSES
from gputally.model.disruptions import CAUSES, Cause, VictimRecord
from gputally.model.lost_work import LostWork
from gputally.model.unaccounted import UnaccountedDay
from gputally.model.units import US_PER_DAY, to_datetime
from gputally.model.usage import AssignmentHour, UnallocatedHour

LARGE = 100_000
"""From so many pods on, several connections read."""
READERS: Final = 2
"""More threads gain little: Python adds up what they read."""


@contextmanager
def page_readers(path: Path, rows: Rows, *, is_alone: bool) -> Iterator[Sequence[Rows]]:
    """Functions that run a statement: `rows` if it `is_alone` or the ledger is small, else new connections.

    Raises: LedgerError.
    """
    with ExitStack() as connections:
        if is_alone or last_pod(rows) < LARGE:
            yield [rows]
        else:
            yield [connections.enter_context(_reader(path)) for _ in range(READERS)]


@contextmanager
def _reader(path: Path) -> Iterator[Rows]:
    with reading(path) as connection:

        def rows(sql: str, values: Mapping[str, Any]) -> Sequence[Row]:
            with converted_errors(path):
                return connection.execute(sql, values).fetchall()

        yield rows


META: Final = "SELECT key, value FROM meta"
ROLL_UPS: Final = "SELECT value FROM meta WHERE key IN ('roll_ups', 'withdrawn_sums') ORDER BY key"
"""Changes whenever allocations are rolled up, or stored sums are withdrawn."""
CLASS_VERSIONS: Final = f"""
{select(PRIORITY_CLASSES)}
WHERE from_us < :end AND (to_us IS NULL OR to_us > :start)
ORDER BY name, from_us
"""
NEXT_PAGE: Final = "SELECT uid FROM pods WHERE uid > :after ORDER BY uid LIMIT 1 OFFSET :pods"
"""The last UID of a page of :pods + 1 pods, if there are that many."""
UNACCOUNTED_DAYS: Final = """
SELECT document FROM working WHERE kind = 'unaccounted-day' AND uid >= :first AND uid < :last ORDER BY uid
"""
"""Documents of `UnaccountedDay`, whose keys begin with the day."""


Found = TypeVar("Found")
_LAST: Final = b""
"""Sorts after every text."""


class _Page(NamedTuple):
    """Pods whose UID is in (after, upto]."""

    after: str
    upto: str | bytes


class SqliteRows:
    """An open file, and what the sums of a reader share."""

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
        meta: dict[str, str] = dict(self._rows(META))
        if "accounting_start_us" not in meta:
            raise LedgerError(f"{self.path}: contains no accounting yet; wait until its aggregator is ready")
        accounted_us = max(int(meta[key]) for key in ("accounting_start_us", "at_us", "evaluated_us") if key in meta)
        return LedgerState(
            cluster=meta.get("cluster"),
            accounting_start_us=int(meta["accounting_start_us"]),
            accounted_us=accounted_us,
            detail_start_us=int(meta["detail_start_us"]) if "detail_start_us" in meta else None,
            later=later_records(meta),
        )

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

    def _undisturbed(self, read: Callable[[], Found]) -> Found:
        """The result of a read that sees each allocation once.

        Allocations that are rolled up while their pages are read would count twice or not at all, and so would those
        whose stored sums are withdrawn. Then the read is repeated in one transaction, at the price of a larger WAL.
        """
        before, found = self._rows(ROLL_UPS), read()
        if self._rows(ROLL_UPS) == before:
            return found
        self._rows("BEGIN")
        try:
            return read()
        finally:
            self._rows("ROLLBACK")

    def _pages(self) -> Iterator[_Page]:
        """Pages of all pods, by UID."""
        after = ""
        while found := self._rows(NEXT_PAGE, {"after": after, "pods": self.page_pods - 1}):
            [(upto,)] = found
            yield _Page(after, upto)
            after = upto
        yield _Page(after, _LAST)

    def _rows(self, sql: str, bounds: Mapping[str, Any] | None = None, page: _Page | None = None) -> list[Row]:
        """All rows of one statement, which is one transaction."""
        values = {**(bounds or {}), **(page._asdict() if page else {})}
        with converted_errors(self.path):
            return self._connection.execute(sql, values).fetchall()


class SqliteLedgerReader(SqliteRows):
    """See `LedgerReader`. It never changes the file, even if this process is killed."""

    def allocations(self, window: Window) -> Iterator[AllocationRecord]:
        """See `LedgerReader.allocations`."""
        bounds = self._detailed(window)
        for page in self._pages():
            latest = {row[0]: row for row in self._rows(allocation_views.ALLOCATIONS, bounds, page)}
            yield from map(allocation_views.allocation, latest.values())
        self._detailed(window)

    def allocation(self, pod_uid: str) -> AllocationRecord | None:
        """See `LedgerReader.allocation`."""
        revisions = self._rows(allocation_views.ALLOCATION, {"uid": pod_uid})
        return allocation_views.allocation(revisions[-1]) if revisions else None

    def segments(self, window: Window) -> Iterator[SegmentRecord]:
        """See `LedgerReader.segments`."""
        bounds = self._detailed(window)
        for page in self._pages():
            yield from map(allocation_views.segment, self._rows(allocation_views.SEGMENTS, bounds, page))
        self._detailed(window)

    def last_segment(self, namespace: str, name: str) -> SegmentRecord | None:
        """See `LedgerReader.last_segment`."""
        named = {"namespace": namespace, "name": name, "accounted": self.state().accounted_us}
        found = self._rows(allocation_views.LAST_SEGMENT, named)
        return allocation_views.segment(found[0]) if found else None

    def allocated(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[AllocatedTime]:
        """See `LedgerReader.allocated`."""
        _expect(by, DIMENSIONS)
        return sorted(self._sums(window, SumsBy(by), cuts)[0], key=attrgetter("labels"))

    def allocated_with_jobs(
        self, window: Window, by: Sequence[str], *, jobs_by: Sequence[str], cuts: Sequence[int] = ()
    ) -> tuple[list[AllocatedTime], list[JobSet]]:
        """See `LedgerReader.allocated_with_jobs`."""
        _expect(by, DIMENSIONS)
        _expect(jobs_by, by)
        return self._sums(window, SumsBy(by, jobs_by), cuts)

    def measured(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[MeasuredTime]:
        """See `LedgerReader.measured`."""
        _expect(by, MEASURED_DIMENSIONS)
        bounds, plan = self._bounds(window), ReadPlan(cuts, self.page_pods)

        def read() -> list[MeasuredTime]:
            expect_whole_days(self._rows, bounds, by, cuts)
            return read_measured(self._rows, bounds, by, plan)

        return sorted(self._undisturbed(read), key=_by_labels)

    def lost(self, window: Window, by: Sequence[str], *, cuts: Sequence[int] = ()) -> list[LostTime]:
        """See `LedgerReader.lost`."""
        _expect(by, MEASURED_DIMENSIONS)
        bounds, plan = self._bounds(window), ReadPlan(cuts, self.page_pods)

        def read() -> list[LostTime]:
            expect_whole_days(self._rows, bounds, by, cuts)
            return read_lost(self._rows, bounds, by, plan)

        return sorted(self._undisturbed(read), key=lambda each: (*_by_labels(each), each.basis))

    def usage(self, window: Window) -> Iterator[AssignmentHour]:
        """See `LedgerReader.usage`."""
        self._detailed(window)
        for start_us in usage.hours_in(self._rows, window):
            yield from map(usage.assignment_hour, self._rows(usage.ASSIGNED_IN_HOUR, {"start": start_us}))

    def unallocated_usage(self, window: Window) -> Iterator[UnallocatedHour]:
        """See `LedgerReader.unallocated_usage`."""
        if any(us % US_PER_DAY for us in window):
            self._detailed(window)
        return map(usage.unallocated_hour, self._rows(usage.UNALLOCATED_IN_WINDOW, self._bounds(window)))

    def capacity(self, window: Window) -> Iterator[CapacityRecord]:
        """See `LedgerReader.capacity`."""
        bounds = self._bounds(window)
        return read_capacity(self._rows, bounds, self._undisturbed(lambda: self._last_allocated(bounds)))

    def allocated_steps(self, window: Window) -> Iterator[NodeSteps]:
        """See `LedgerReader.allocated_steps`."""
        bounds = self._bounds(window)
        yield from self._undisturbed(lambda: list(read_steps(self._rows, bounds, self.page_pods)))

    def preemptions(self, window: Window) -> Iterator[VictimRecord]:
        """See `LedgerReader.preemptions`."""
        return read_preemptions(self._rows, self._bounds(window))

    def disruptions(
        self, window: Window, *, causes: Collection[Cause] = CAUSES, of_job: tuple[str, str] = ("", "")
    ) -> Iterator[VictimRecord]:
        """See `LedgerReader.disruptions`."""
        return read_disruptions(self._rows, self._bounds(window), causes, of_job)

    def priority_classes(self, window: Window) -> list[PriorityClassRecord]:
        """See `LedgerReader.priority_classes`."""
        rows = self._rows(CLASS_VERSIONS, self._bounds(window))
        return [record_of(PriorityClassRecord, row) for row in rows]

    def lost_work(self, window: Window, *, causes: Collection[Cause] = CAUSES) -> dict[str, LostWork]:
        """See `LedgerReader.lost_work`."""
        return read_lost_work(self._rows, {"causes": json.dumps([*causes])} | self._bounds(window))

    def bindings(self, window: Window, node_uids: Sequence[str]) -> Iterator[NodeBinding]:
        """See `LedgerReader.bindings`."""
        return read_bindings(self._rows, self._detailed(window), node_uids)

    def node_ends(self, node_uids: Sequence[str]) -> dict[str, int]:
        """See `LedgerReader.node_ends`."""
        return read_node_ends(self._rows, node_uids)

    def pending_deliveries(self, *, after: str, limit: int) -> PendingDeliveries:
        """See `LedgerReader.pending_deliveries`."""
        return read_pending(self._rows, after=after, limit=limit)

    def victims(self, job_preemptions: Sequence[str]) -> VictimRecords:
        """See `LedgerReader.victims`."""
        return read_victims(self._rows, job_preemptions)

    def waits(self, window: Window, *, pod_uid: str = "", named: tuple[str, str] = ("", "")) -> Iterator[WaitRecord]:
        """See `LedgerReader.waits`."""
        return read_waits(self._rows, self._bounds(window), pod_uid, named)

    def pending_times(self, window: Window) -> Iterator[PendingTime]:
        """See `LedgerReader.pending_times`."""
        return read_pending_times(self._rows, self._bounds(window))

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
        yield from (gaps.gap(GapSubject.WATCH, row) for row in self._rows(gaps.WATCH_GAPS, bounds))
        for (uid,) in self._rows(gaps.WITH_GAPS, bounds):
            revisions = self._rows(allocation_views.ALLOCATION, {"uid": uid})
            if revisions:  # it may just have been rolled up
                yield from gaps.gap_of(allocation_views.allocation(revisions[-1]), window)
        yield from (gaps.gap(GapSubject.NODE, row) for row in self._rows(gaps.NODE_GAPS, bounds))
        self._detailed(window)

    def unaccounted(self, window: Window) -> list[UnaccountedDay]:
        """See `LedgerReader.unaccounted`."""
        first, last = (f"{to_datetime(us):%Y-%m-%d}" for us in (window.start_us, window.end_us - 1))
        rows = self._rows(UNACCOUNTED_DAYS, {"first": first, "last": f"{last}~"})
        return [msgspec.json.decode(document, type=UnaccountedDay) for (document,) in rows]

    def tenants_named(self, column: str, glob: str) -> set[str]:
        """See `LedgerReader.tenants_named`."""
        _expect([column], NAMED)
        return tenants_named(self._rows, column, glob)

    def closed_periods(self) -> list[ClosedPeriod]:
        """See `LedgerReader.closed_periods`."""
        return read_closed(self._rows)

    def _sums(self, window: Window, sums_by: SumsBy, cuts: Sequence[int]) -> tuple[list[AllocatedTime], list[JobSet]]:
        bounds, plan = self._bounds(window), ReadPlan(cuts, self.page_pods)

        def read() -> tuple[list[AllocatedTime], list[JobSet]]:
            expect_whole_days(self._rows, bounds, sums_by.by, cuts)
            is_alone = bool(cuts) or self._connection.in_transaction
            with page_readers(self.path, self._rows, is_alone=is_alone) as readers:
                try:
                    return read_sums(self._rows, bounds, sums_by, plan._replace(readers=readers))
                except msgspec.DecodeError as error:
                    raise LedgerDamaged(f"{self.path}: is damaged: stored sums cannot be read: {error}") from None

        return self._undisturbed(read)

    def _last_allocated(self, bounds: Mapping[str, int]) -> dict[str, int]:
        """The end (µs) of the last allocation on each node that was deleted at an unknown time in the window."""
        ends = dict[str, int]()
        if self._rows(gaps.NODE_GAPS, bounds):
            for page in self._pages():
                for uid, end_us in self._rows(capacity.LAST_ALLOCATED, bounds, page):
                    ends[uid] = max(end_us, ends.get(uid, 0))
            for uid, end_us in self._rows(capacity.LAST_ROLLED_UP, bounds):
                ends[uid] = max(end_us, ends.get(uid, 0))
        return ends


def _by_labels(found: MeasuredTime | LostTime) -> tuple[Row, str, int]:
    """The order of sums."""
    return found.labels, found.price.key if found.price else "", found.period


def _expect(by: Sequence[str], known: Sequence[str]) -> None:
    if unknown := [name for name in by if name not in known]:
        raise ValueError(f"{', '.join(unknown)}: not a dimension of a ledger; use {', '.join(known)}")
