"""What a number of a report consists of: allocations, segment by segment, with their prices and the evidence."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappush, heappushpop
from itertools import chain, groupby
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.errors import DetailRolledUp
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import AllocationRecord, SegmentRecord, Window, pieces
from gputally.model.allocation import Gap, Segment
from gputally.reports.query import ReportQuery

_VALUES: Final[Mapping[str, Callable[[SegmentRecord], str]]] = {
    **{name: attrgetter(name) for name in ("namespace", "job_kind", "job", "node", "outcome", "job_outcome")},
    **{name: attrgetter(f"segment.{name}") for name in ("tier", "tenant", "queue", "gpu_model", "pool", "resource")},
    "pod": attrgetter("name"),
    "purchase": lambda each: each.segment.price.purchase.value if each.segment.price else "",
}
"""The columns of a report that are no dimensions of time."""


class ExplainedSegment(NamedTuple):
    """A part of an allocation that lies in the period, with one state, quantity and price."""

    segment: Segment

    @property
    def gpu_time(self) -> int:
        """In µs·µGPU."""
        return ((self.segment.end_us or 0) - self.segment.start_us) * self.segment.quantity

    @property
    def currency(self) -> str:
        """Empty if it is unpriced."""
        return self.segment.price.currency if self.segment.price else ""

    @property
    def cost(self) -> int:
        """The exact cost, see `COST_UNIT`; 0 if it is unpriced."""
        return self.segment.price.cost(self.gpu_time) if self.segment.price else 0


class ExplainedPod(Struct, frozen=True, kw_only=True):
    """One pod: its names, its whole allocation, and the parts of it that the report adds up, in the order of time."""

    of: SegmentRecord
    allocation: AllocationRecord
    segments: tuple[ExplainedSegment, ...]

    @property
    def rank(self) -> tuple[int, int]:
        """Cost and GPU-time. Costs in different currencies are compared as they are."""
        return sum(each.cost for each in self.segments), sum(each.gpu_time for each in self.segments)

    def uncharged(self, window: Window) -> int:
        """The GPU-time that it had at most in the gap in which it ended; it is charged up to the gap's start."""
        gap = self.allocation.gap or Gap(from_us=0, to_us=0)
        length_us = min(gap.to_us, window.end_us) - gap.from_us
        held = sum(each.segment.quantity for each in self.segments if each.segment.end_us == gap.from_us)
        return max(0, length_us) * held


class ExplainedTotal(NamedTuple):
    """The sum in one currency: GPU-time (µs·µGPU), of this unpriced, and cost, see `COST_UNIT`."""

    currency: str
    gpu_time: int
    unpriced: int
    cost: int


class ExplainedSums:
    """Adds up pods, as a report does: GPU-time and cost by currency, which is empty for unpriced time.

    `uncharged` is what the pods that ended `unobserved` had at most after their charged end.
    """

    def __init__(self, window: Window) -> None:
        self.pods = 0
        self.unobserved = 0
        self.uncharged = 0
        self._window = window
        self.gpu_time: Counter[str] = Counter()
        self.cost: Counter[str] = Counter()

    def add(self, pod: ExplainedPod) -> None:
        """Add a pod."""
        uncharged = pod.uncharged(self._window)
        self.pods += 1
        self.unobserved += uncharged > 0
        self.uncharged += uncharged
        for each in pod.segments:
            self.gpu_time[each.currency] += each.gpu_time
            self.cost[each.currency] += each.cost

    def include(self, other: "ExplainedSums") -> None:
        """Add all pods of `other`."""
        self.pods += other.pods
        self.unobserved += other.unobserved
        self.uncharged += other.uncharged
        self.gpu_time.update(other.gpu_time)
        self.cost.update(other.cost)

    def totals(self) -> list[ExplainedTotal]:
        """Totals by currency; unpriced time belongs to the only currency, if there is one."""
        currencies, unpriced = sorted(self.gpu_time.keys() - {""}), self.gpu_time[""]
        if len(currencies) == 1:
            [home] = currencies
            return [ExplainedTotal(home, self.gpu_time[home] + unpriced, unpriced, self.cost[home])]
        return [
            ExplainedTotal(name, time, time if not name else 0, self.cost[name])
            for name, time in sorted(self.gpu_time.items())
        ]


def explain(reader: LedgerReader, query: ReportQuery) -> Iterator[ExplainedPod]:
    """The pods whose time the query's report adds up, by UID; one pod at a time. Raises: LedgerError."""
    periods = query.periods
    filters = [(each, _VALUES[each.column]) for each in query.filters if each.column in _VALUES]
    times = [each for each in query.filters if each.column not in _VALUES]
    included = [all(each.includes(values[each.column]) for each in times) for values in periods.values]
    for uid, records in groupby(reader.segments(query.window), key=attrgetter("pod_uid")):
        found = [each for each in records if all(filter_.includes(value(each)) for filter_, value in filters)]
        segments = tuple(chain.from_iterable(_parts(each.segment, periods.cuts, included) for each in found))
        if not segments:
            continue
        allocation = reader.allocation(uid)
        if allocation is None:
            raise DetailRolledUp(f"pod {uid} was rolled up by the retention while it was read; run the command again")
        yield ExplainedPod(of=found[0], allocation=allocation, segments=segments)


def _parts(segment: Segment, cuts: Sequence[int], included: Sequence[bool]) -> Iterator[ExplainedSegment]:
    """The parts of a segment in the periods between `cuts` (µs) that are included."""
    for piece in pieces(segment.start_us, segment.end_us or 0, cuts):
        if included[piece.period]:
            yield ExplainedSegment(replace(segment, start_us=piece.start_us, end_us=piece.end_us) if cuts else segment)


def costliest(pods: Iterable[ExplainedPod], count: int, *, others: ExplainedSums) -> list[ExplainedPod]:
    """The `count` pods with the highest cost, the highest first; the rest is added to `others`."""
    found = list[tuple[tuple[int, int], int, ExplainedPod]]()
    for number, pod in enumerate(pods):
        entry = pod.rank, -number, pod
        if len(found) < count:
            heappush(found, entry)
        else:
            others.add(heappushpop(found, entry)[-1])
    return [pod for *_, pod in sorted(found, reverse=True)]
