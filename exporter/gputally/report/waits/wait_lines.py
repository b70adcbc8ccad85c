"""Sums of waits over a period by any of their columns, and how long the pods waited."""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final, NamedTuple

from msgspec import Struct, field

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.wait_records import WaitTime
from gputally.model.waits import NOBODY
from gputally.report.calendar.periods import TIME_DIMENSIONS, Periods, periods_of
from gputally.report.report_query import ReportQuery

_OWN: Final = ("tier", "tenant", "namespace", "cause", "reason", "occupying_tier", "occupying_tenant")
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    **{column: (column,) for column in _OWN},
    "pod": ("namespace", "pod"),
    **{dimension: (dimension,) for dimension in TIME_DIMENSIONS},
}
"""The columns that identify a line, by each dimension. A pod is unique only in its namespace."""
FILTERED: Final = (*_OWN, "pod", *TIME_DIMENSIONS)
"""The columns that a filter can name."""
OTHERS_TENANT: Final = "other"
"""Tenants that the reader may not see."""
Labels = tuple[str, ...]


class WaitQuery(NamedTuple):
    """What to report: the period and the filters, and the dimensions of the lines.

    With `own_tenants`, occupying tenants other than the waiting one are not named.
    """

    scope: ReportQuery
    by: tuple[str, ...]
    own_tenants: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that identify a line, each once."""
        return tuple(dict.fromkeys(column for dimension in self.by for column in COLUMNS[dimension]))


class Waited(Struct, kw_only=True):
    """Waits of a line: GPU-time (µs·µGPU) and its lowest and `highest` cost by currency, "" for what has no price.

    `at_least` is the part, always without a price, of workloads that may have lacked more pods than are known.
    `spans` are how long each pod waited for it in the period, µs; of pods that do not exist, each workload. `pods` is
    their number, of a workload the most that it lacked at once.
    """

    time: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    cost: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    highest: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    at_least: int = 0
    spans: "array[int]" = field(default_factory=lambda: array("q"))
    pods: int = 0


class Waits(NamedTuple):
    """The lines by their labels, and all of them together: of pods, or of pods that do not exist."""

    is_created: bool
    lines: dict[Labels, Waited]
    total: Waited

    def line(self, labels: Labels) -> Waited:
        """The line of these labels."""
        if (found := self.lines.get(labels)) is None:
            found = self.lines[labels] = Waited()
        return found


def read_waits(reader: LedgerReader, query: WaitQuery) -> tuple[Waits, Waits]:
    """The waits of pods, and those for pods that do not exist. Raises: LedgerError."""
    found = Waits(True, {}, Waited()), Waits(False, {}, Waited())  # noqa: FBT003 - a field
    named = (*query.by, *(each.column for each in query.scope.filters))
    times = tuple(dict.fromkeys(each for each in named if each in TIME_DIMENSIONS))
    periods = periods_of(times, query.scope.window, query.scope.calendar)
    parts = reader.wait_times(query.scope.window)
    for (is_created, *_), own in groupby(parts, key=lambda each: (each.is_created, each.namespace, each.uid)):
        _add(found[not is_created], own, query, periods)
    return found


class _Own(Struct):
    """What one pod or workload waited for in one line."""

    span_us: int = 0
    pods: int = 0


def _add(found: Waits, own: Iterator[WaitTime], query: WaitQuery, periods: Periods) -> None:
    """Add the waits of one pod or workload."""
    sums, whole = defaultdict[Labels, _Own](_Own), _Own()
    for part in own:
        for shares, span_us in _pieces(part, query, periods):
            for labels, quantity in shares.items():
                for waited in (found.line(labels), found.total):
                    _count(waited, part, quantity, span_us)
            for each in (*(sums[labels] for labels in shares), whole):
                each.span_us += span_us
                each.pods = max(each.pods, part.pods)
    for labels, each in sums.items():
        found.lines[labels].spans.append(each.span_us)
        found.lines[labels].pods += each.pods
    if whole.pods:
        found.total.spans.append(whole.span_us)
        found.total.pods += whole.pods


def _count(waited: Waited, part: WaitTime, quantity: int, span_us: int) -> None:
    gpu_time, currency = part.pods * quantity * span_us, part.price.currency if part.price else ""
    waited.time[currency] += gpu_time
    waited.at_least += gpu_time * part.is_at_least
    if part.price:
        waited.cost[currency] += part.price.cost(gpu_time)
        waited.highest[currency] += (part.highest or part.price).cost(gpu_time)


def _pieces(part: WaitTime, query: WaitQuery, periods: Periods) -> Iterator[tuple[Mapping[Labels, int], int]]:
    """The µGPU of a wait by line in each period that it overlaps, and how long it does, as far as the filters go."""
    window = query.scope.window
    starts, ends = (window.start_us, *periods.cuts), (*periods.cuts, window.end_us)
    for start_us, end_us, names in zip(starts, ends, periods.values, strict=True):
        until_us = end_us if part.to_us is None else min(part.to_us, end_us)
        span_us = until_us - max(part.from_us, start_us)
        if span_us > 0 and (shares := _shares(part, names, query)):
            yield shares, span_us


def _shares(part: WaitTime, names: Mapping[str, str], query: WaitQuery) -> dict[Labels, int]:
    """What is charged to the occupying tenant, and what to nobody, in µGPU by line."""
    found: dict[Labels, int] = {}
    for quantity, is_occupied in ((part.occupied, True), (part.quantity - part.occupied, False)):
        values = {**_values(part, is_occupied=is_occupied, own_tenants=query.own_tenants), **names}
        if quantity and query.scope.includes(values):
            labels = tuple(values[column] for column in query.columns)
            found[labels] = found.get(labels, 0) + quantity
    return found


def _values(part: WaitTime, *, is_occupied: bool, own_tenants: bool) -> dict[str, str]:
    tenant = part.occupying_tenant if is_occupied else NOBODY
    if own_tenants and is_occupied and part.occupying_tenant != part.tenant:
        tenant = OTHERS_TENANT
    return {
        "tier": part.tier,
        "tenant": part.tenant,
        "namespace": part.namespace,
        "pod": part.name,
        "cause": part.cause.value,
        "reason": part.reason.value,
        "occupying_tier": part.occupying_tier if is_occupied else NOBODY,
        "occupying_tenant": tenant,
    }
