"""What the accounting hands to the ledger, and gets back when the process starts again.

Everything is keyed, and a later value replaces an earlier one: changes that could not be written are
merged with those that follow, and writing the same changes twice is harmless.
"""

from typing import NamedTuple, Self

from msgspec import Struct, field
from msgspec.structs import fields, replace

from gputally.accounting.totals.label_limiter import KnownValue, Value
from gputally.accounting.totals.series import Labels, Series
from gputally.accounting.totals.totals import Total
from gputally.model.history import alike
from gputally.model.kube import Kind
from gputally.model.measured.usage_record import AssignmentHour, AssignmentKey, GpuKey, UnallocatedHour
from gputally.model.node import NodeFacts, NodeRecord
from gputally.model.observation import Checkpoint
from gputally.model.pod import PodRecord
from gputally.model.preemption import Preemption
from gputally.model.units import US_PER_SECOND


class Known(NamedTuple):
    """How many of a pod's segments, and of its terms, are as they were handed over before."""

    segments: int
    terms: int

    def both(self, other: Self) -> "Known":
        """What is known after both of two steps."""
        return Known(min(self.segments, other.segments), min(self.terms, other.terms))


UNKNOWN = Known(0, 0)


def known_of(before: PodRecord | None, record: PodRecord | None) -> Known:
    """What of `record` is as it was in `before`."""
    if before is None or record is None:
        return UNKNOWN
    return Known(alike(before.segments, record.segments), alike(before.terms, record.terms))


class Changes(Struct, frozen=True, kw_only=True):
    """One consistent step of the accounting.

    `revisions` are allocations whose segments changed, `known` what of them and of the `pods` is as it was: nothing of
    one it does not name. `pods`, `nodes` and `departed` are the working state to resume from, and so are the
    `documents` of parts, by the part's name and key; None for what is no longer kept, as in `series` and
    `known_values`.
    `capacity` is what became known of nodes, by UID and instant: name and facts. `live` is the allocated GPU-time as
    the counters know it, as the line (a, b); None when nothing is to be compared.
    `interruptions` are times nobody watched a kind, as (kind, from) to end. Hours of usage are as last told, by holder
    and start or by GPU.
    """

    accounting_start_us: int
    evaluated_us: int
    at_us: int
    revisions: dict[str, PodRecord] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    pods: dict[str, PodRecord | None] = field(default_factory=dict)
    nodes: dict[str, NodeRecord | None] = field(default_factory=dict)
    capacity: dict[tuple[str, int], tuple[str, NodeFacts]] = field(default_factory=dict)
    documents: dict[tuple[str, str], Struct | None] = field(default_factory=dict)
    counted_preemptions: dict[str, Preemption] = field(default_factory=dict)
    series: dict[tuple[Total, Labels], Series | None] = field(default_factory=dict)
    known_values: dict[Value, KnownValue | None] = field(default_factory=dict)
    resumes: dict[Kind, Checkpoint] = field(default_factory=dict)
    interruptions: dict[tuple[Kind, int], int] = field(default_factory=dict)
    assignment_usage: dict[tuple[AssignmentKey, int], AssignmentHour] = field(default_factory=dict)
    unallocated_usage: dict[GpuKey, UnallocatedHour] = field(default_factory=dict)
    departed: dict[str, PodRecord | None] = field(default_factory=dict)
    live: tuple[int, int] | None = None

    def followed_by(self, later: "Changes") -> "Changes":
        """These changes and `later` ones as one step."""
        merged = {name: getattr(self, name) | getattr(later, name) for name in _KEYED}
        known = self.known | {uid: self._known(uid, known) for uid, known in later.known.items()}
        return replace(later, **merged | {"known": known})

    def _known(self, uid: str, later: Known) -> Known:
        return later.both(self.known.get(uid, UNKNOWN)) if uid in self.revisions or uid in self.pods else later

    @property
    def weight(self) -> int:
        """How many rows of the ledger wait to be written, about: what an unwritable ledger costs in memory."""
        records = len(self.revisions) + len(self.pods) + len(self.nodes) + len(self.documents) + len(self.departed)
        return records + len(self.series) + len(self.assignment_usage) + len(self.unallocated_usage)


_KEYED = tuple(each.name for each in fields(Changes) if each.default_factory is dict)
"""The fields in which a later value of a key replaces the earlier one."""


class Saved(Struct, frozen=True, kw_only=True):
    """What a ledger holds of an earlier process: the sum of all its changes; of usage, what agents may still tell of.

    Hours of one holder come in their order, `documents` by the part's name. `resumed_us` is when it was taken up.
    `is_moved` when the ledger has it otherwise, see `present`.
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
    """Books opened at `now_us`: at the beginning of that second, since API timestamps are cut to seconds."""
    accounting_start_us = now_us - now_us % US_PER_SECOND
    return Saved(accounting_start_us=accounting_start_us, evaluated_us=now_us, at_us=now_us, resumed_us=now_us)
