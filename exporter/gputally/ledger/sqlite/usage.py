"""Measured usage as rows, and its sums: each hour is divided among the segments of its pod.

Parameters are the window [:start, :end), the end of accounting :accounted, and assignments numbered (:after, :upto].
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from gputally.ledger.measured_sums import MeasuredHour, Parts, divided, parts_of
from gputally.ledger.price_columns import PRICE, price_of
from gputally.ledger.records import MeasuredTime, Window
from gputally.ledger.sqlite.allocated_time import ReadPlan
from gputally.ledger.sqlite.daily_sums import daily_measured
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.tables.statements import listed, select
from gputally.ledger.tables.usage import UNALLOCATED_USAGE, USAGE_ASSIGNMENTS, USAGE_HOURS, UnallocatedHourRow
from gputally.model.price import Price
from gputally.model.units import US_PER_HOUR
from gputally.model.usage import AssignmentHour, AssignmentKey, AssignmentRecord, GpuHour, GpuKey, Hour, UnallocatedHour

if TYPE_CHECKING:
    from gputally.ledger.row_labels import Key

_ASSIGNMENT: Final = USAGE_ASSIGNMENTS.rest
_HOUR: Final = tuple(name for name in USAGE_HOURS.rest if name != "open")
_NEXT_HOUR: Final = "SELECT min(start_us) FROM usage_hours WHERE start_us > :after AND start_us < :end"
MEASURED: Final = """
h.from_us - a.ahead_us, max(h.to_us, h.from_us + 1) - a.ahead_us, h.measured, h.used, h.burst, h.energy
"""
"""The columns of a `MeasuredHour`, from `usage_hours` h and `usage_assignments` a."""
_PricedLabels = tuple[Row, Price | None]
"""Labels and price."""
_LAST: Final = "SELECT ifnull(max(assignment), 0) FROM usage_assignments"
_MOST_AHEAD_US: Final = US_PER_HOUR
"""Clocks that are off by more have a partial index; of others, only the hours beside a window are looked at."""
_PAGE: Final = f"""
a.pod_uid <> '' AND a.assignment IN (
    WITH RECURSIVE found (start_us) AS (
        SELECT min(start_us) FROM usage_hours WHERE start_us > :start - {_MOST_AHEAD_US + US_PER_HOUR + 2}
        UNION ALL
        SELECT (SELECT min(start_us) FROM usage_hours WHERE start_us > found.start_us) FROM found
        WHERE start_us < :end + {_MOST_AHEAD_US}
    )
    SELECT u.assignment FROM found CROSS JOIN usage_hours u
      ON u.start_us = found.start_us AND u.assignment > :after AND u.assignment <= :upto
    WHERE found.start_us < :end + {_MOST_AHEAD_US}
    UNION ALL
    SELECT assignment FROM usage_assignments
    WHERE ahead_us NOT BETWEEN -{_MOST_AHEAD_US} AND {_MOST_AHEAD_US} AND assignment > :after AND assignment <= :upto
)"""  # noqa: S608 (numbers only)
"""Assignments numbered (:after, :upto] of pods, with usage in the window [:start, :end)."""
_HOURS: Final = f"""
SELECT a.pod_uid, a.resource, {MEASURED}
FROM usage_assignments a CROSS JOIN usage_hours h ON h.assignment = a.assignment
WHERE {_PAGE} AND h.from_us - a.ahead_us < :end AND max(h.to_us, h.from_us + 1) - a.ahead_us > :start
"""  # noqa: S608 (literals only)


_ASSIGNED: Final = f"SELECT {listed((*USAGE_ASSIGNMENTS.fields, 'open', 'start_us', *_HOUR))}"
SELECT_ASSIGNED: Final = f"""
{_ASSIGNED} FROM usage_hours INDEXED BY usage_hours_open CROSS JOIN usage_assignments USING (assignment)
WHERE open
ORDER BY {listed(AssignmentKey._fields)}, start_us
"""
ASSIGNED_IN_HOUR: Final = f"""
{_ASSIGNED} FROM usage_hours CROSS JOIN usage_assignments USING (assignment)
WHERE start_us = :start
ORDER BY {listed(AssignmentKey._fields)}
"""
_UNALLOCATED: Final = select(UNALLOCATED_USAGE)
SELECT_UNALLOCATED: Final = f"""
{_UNALLOCATED} INDEXED BY unallocated_usage_open
WHERE open
ORDER BY start_us, epoch, gpu
"""
UNALLOCATED_IN_WINDOW: Final = (
    f"{_UNALLOCATED} WHERE start_us >= :start AND start_us < :end ORDER BY start_us, epoch, gpu"
)


def hours_in(rows: Rows, window: Window) -> Iterator[int]:
    """The starts of all hours with usage."""
    start_us: int | None = window.start_us - 1
    while start_us is not None:
        [(start_us,)] = rows(_NEXT_HOUR, {"after": start_us, "end": window.end_us})
        if start_us is not None:
            yield start_us


def assignment_hour(row: Row) -> AssignmentHour:
    """One row of SELECT_ASSIGNED or ASSIGNED_IN_HOUR."""
    key, rest = row[: len(AssignmentKey._fields)], row[len(AssignmentKey._fields) :]
    is_open, start_us, *amounts = rest[len(_ASSIGNMENT) :]
    hour = dict(zip(_HOUR, amounts, strict=True))
    return AssignmentHour(
        assignment=AssignmentRecord(key=AssignmentKey(*key), **dict(zip(_ASSIGNMENT, rest, strict=False))),
        hour=Hour(start_us=start_us, **hour | {"memory": int(hour["memory"])}),
        open=bool(is_open),
    )


def unallocated_hour(row: Row) -> UnallocatedHour:
    """One row of SELECT_UNALLOCATED or UNALLOCATED_IN_WINDOW."""
    found = UnallocatedHourRow(*row)
    hour = GpuHour(start_us=found.start_us, unattributed=found.unattributed, energy=found.energy)
    key = GpuKey(found.epoch, found.gpu, found.start_us)
    return UnallocatedHour(key=key, node=found.node, hour=hour, open=bool(found.open))


def read_measured(rows: Rows, bounds: Mapping[str, int], by: Sequence[str], plan: ReadPlan) -> list[MeasuredTime]:
    """The amounts by the dimensions `by`, price and period; a page has a number of assignments.

    Each hour is divided in proportion to time where the window, a period or the labels of its pod end.
    """
    sums: defaultdict[Key, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    window = Window(bounds["start"], bounds["end"])
    [(last,)] = rows(_LAST, {})
    for after in range(0, last, plan.page):
        values = {**bounds, "after": after, "upto": after + plan.page}
        known = _parts(rows(_segments(by), values))
        for uid, resource, from_us, to_us, *amounts in rows(_HOURS, values):
            if parts := known.get((uid, resource)) or known.get((uid, "")):
                hour = MeasuredHour(from_us, to_us, tuple(amounts))
                for terms, period, some in divided(hour, parts, window, plan.cuts):
                    key = *terms, period
                    sums[key][:] = map(int.__add__, sums[key], some)
    for key, some in daily_measured(rows, bounds, by, plan.cuts):
        sums[key][:] = map(int.__add__, sums[key], some)
    return [
        MeasuredTime(labels, price, measured, used, burst, energy, period)
        for (labels, price, period), (measured, used, burst, energy) in sums.items()
        if measured or used or energy
    ]


def _segments(by: Sequence[str]) -> str:
    columns = ", ".join(("price_key", *PRICE, *by))
    return f"""
SELECT pod_uid, resource, start_us, {columns} FROM allocation_segments
WHERE pod_uid IN (SELECT a.pod_uid FROM usage_assignments a WHERE {_PAGE})
ORDER BY pod_uid, start_us, ordinal
"""  # noqa: S608 (dimensions only)


def _parts(found: Sequence[Row]) -> Parts[_PricedLabels]:
    """The parts of each pod by labels and price."""
    split = ((*row[:3], row[3 : len(PRICE) + 4], row[len(PRICE) + 4 :]) for row in found)
    return parts_of(
        (uid, resource, start_us, (labels, price_of(*price) if price[0] else None))
        for uid, resource, start_us, price, labels in split
    )
