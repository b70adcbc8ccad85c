"""What the accounting passes to the ledger, and gets back when the process restarts.

Everything has a key, and a later value replaces an earlier one: changes that could not be written are merged with later
ones, and writing the same changes twice has no effect.
"""

from typing import NamedTuple, Self

from msgspec import Struct, field
from msgspec.structs import fields, replace

from gputally.accounting.jobs.progress import PodProgress, ProgressKey
from gputally.accounting.jobs.record import JobRecord
from gputally.accounting.totals.label_limiter import KnownValue, Value
from gputally.accounting.totals.series import Labels, Series
from gputally.accounting.totals.total import Lines, Total
from gputally.model.disruptions import Victim
from gputally.model.history import alike
from gputally.model.kube.kinds import Kind
from gputally.model.kube.policy import ClassVersion
from gputally.model.lost_work import LostWork
from gputally.model.node_record import NodeFacts, NodeRecord
from gputally.model.observation import Checkpoint
from gputally.model.pod_record import PodRecord
from gputally.model.price import Asset, Price
from gputally.model.units import US_PER_SECOND
from gputally.model.usage import AssignmentHour, AssignmentKey, GpuKey, UnallocatedHour
from gputally.model.waits import PendingSegmentRow, UncreatedPodsSegment


class Known(NamedTuple):
    """How many of a pod's segments and terms the ledger already has."""

    segments: int
    terms: int

    def both(self, other: Self) -> "Known":
        """The part that is known after two steps."""
        return Known(min(self.segments, other.segments), min(self.terms, other.terms))


UNKNOWN = Known(0, 0)


def known_of(before: PodRecord | None, record: PodRecord | None) -> Known:
    """The part of `record` that is the same in `before`."""
    if before is None or record is None:
        return UNKNOWN
    return Known(alike(before.segments, record.segments), alike(before.terms, record.terms))


class Changes(Struct, frozen=True, kw_only=True):
    """One consistent step of the accounting.

    `revisions` are allocations with changed segments; `known` is the part of them and of `pods` that the ledger already
    has, nothing for those it does not name. `pods`, `nodes` and `departed` are the working state to resume from, and so
    are the `documents` of parts, by the part's name and key; None for dropped ones, as in `series` and `known_values`.
    `jobs` are new or changed, by UID; `progress` is new, by job and pod, as are `priority_classes` by name and start.
    `waits` are by pod and begin, `uncreated_waits` by namespace, workload and begin, None for withdrawn ones.
    `capacity` has new facts of nodes, by UID and time: name and facts; `asset_prices` say what a GPU-hour of capacity
    costs from when on. `live` are the sums of the counters that are to be compared with those of the ledger.
    `interruptions` are observation gaps, from (kind, start) to end. Hours of usage are as last reported, by assignment
    and start or by GPU. `has_waits` is False if waits are not recorded, as the feature is off.
    """

    accounting_start_us: int
    evaluated_us: int
    at_us: int
    revisions: dict[str, PodRecord] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    pods: dict[str, PodRecord | None] = field(default_factory=dict)
    nodes: dict[str, NodeRecord | None] = field(default_factory=dict)
    capacity: dict[tuple[str, int], tuple[str, NodeFacts]] = field(default_factory=dict)
    asset_prices: dict[tuple[Asset, int], Price | None] = field(default_factory=dict)
    documents: dict[tuple[str, str], Struct | None] = field(default_factory=dict)
    victims: dict[str, Victim | None] = field(default_factory=dict)
    lost_work: dict[str, LostWork | None] = field(default_factory=dict)
    jobs: dict[str, JobRecord] = field(default_factory=dict)
    progress: dict[ProgressKey, PodProgress] = field(default_factory=dict)
    priority_classes: dict[tuple[str, int], ClassVersion] = field(default_factory=dict)
    waits: dict[tuple[str, int], PendingSegmentRow | None] = field(default_factory=dict)
    uncreated_waits: dict[tuple[str, str, int], UncreatedPodsSegment | None] = field(default_factory=dict)
    series: dict[tuple[Total, Labels], Series | None] = field(default_factory=dict)
    known_values: dict[Value, KnownValue | None] = field(default_factory=dict)
    resumes: dict[Kind, Checkpoint] = field(default_factory=dict)
    interruptions: dict[tuple[Kind, int], int] = field(default_factory=dict)
    assignment_usage: dict[tuple[AssignmentKey, int], AssignmentHour] = field(default_factory=dict)
    unallocated_usage: dict[GpuKey, UnallocatedHour] = field(default_factory=dict)
    departed: dict[str, PodRecord | None] = field(default_factory=dict)
    live: Lines = field(default_factory=dict)
    has_waits: bool = True

    def followed_by(self, later: "Changes") -> "Changes":
        """One step that has the effect of `self` and then of `later`."""
        merged = {name: getattr(self, name) | getattr(later, name) for name in _KEYED}
        known = self.known | {uid: self._known(uid, known) for uid, known in later.known.items()}
        return replace(later, **merged | {"known": known})

    def _known(self, uid: str, later: Known) -> Known:
        return later.both(self.known.get(uid, UNKNOWN)) if uid in self.revisions or uid in self.pods else later

    @property
    def weight(self) -> int:
        """The approximate number of rows to write, a measure of memory while the ledger is not writable."""
        records = len(self.revisions) + len(self.pods) + len(self.nodes) + len(self.documents) + len(self.departed)
        records += len(self.progress) + len(self.waits) + len(self.uncreated_waits)
        return records + len(self.series) + len(self.assignment_usage) + len(self.unallocated_usage)


_KEYED = tuple(each.name for each in fields(Changes) if each.default_factory is dict)
"""The fields in which a later value of a key replaces the earlier one."""


class Saved(Struct, frozen=True, kw_only=True):
    """The state that an earlier process stored: the sum of all its changes, with usage that agents may still revise.

    Hours of one assignment are in order, `documents` are by the part's name. `resumed_us` is when this process resumed.
    `is_moved` says that the ledger has other times, see `at_present`.
    """

    accounting_start_us: int
    evaluated_us: int
    at_us: int
    resumed_us: int = 0
    pods: tuple[PodRecord, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    documents: dict[str, tuple[Struct, ...]] = field(default_factory=dict)
    series: dict[tuple[Total, Labels], Series] = field(default_factory=dict)
    known_values: dict[Value, KnownValue] = field(default_factory=dict)
    resumes: dict[Kind, Checkpoint] = field(default_factory=dict)
    assignment_usage: tuple[AssignmentHour, ...] = ()
    unallocated_usage: tuple[UnallocatedHour, ...] = ()
    departed: tuple[PodRecord, ...] = ()
    is_moved: bool = False


def new_accounts(now_us: int) -> Saved:
    """A new ledger's state: accounting starts with the second of `now_us`, as API times have whole seconds.

    The state is of that start too, so that prices hold from then on.
    """
    accounting_start_us = now_us - now_us % US_PER_SECOND
    return Saved(
        accounting_start_us=accounting_start_us, evaluated_us=now_us, at_us=accounting_start_us, resumed_us=now_us
    )
