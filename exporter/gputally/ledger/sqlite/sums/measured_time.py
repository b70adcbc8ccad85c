"""Sums of measured usage, by the segments of the pods it belongs to.

Parameters are the window [:start, :end), the end of accounting :accounted, and assignments numbered (:after, :upto].
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from gputally.ledger.price_columns import PRICE, price_of
from gputally.ledger.records import MeasuredTime, Window
from gputally.ledger.sqlite.segment_rows import Row
from gputally.ledger.sqlite.sums.allocated_time import ReadPlan
from gputally.ledger.sqlite.sums.daily_sums import daily_measured
from gputally.ledger.sqlite.sums.measured_hours import MEASURED, MeasuredHour, Parts, divided, parts_of
from gputally.ledger.sqlite.sums.names import Key, Rows
from gputally.model.price import Price

Terms = tuple[Row, Price | None]
"""Labels and price."""

_LAST: Final = "SELECT ifnull(max(assignment), 0) FROM usage_assignments"
_PAGE: Final = "a.assignment > :after AND a.assignment <= :upto AND a.pod_uid <> ''"
_HOURS: Final = f"""
SELECT a.pod_uid, a.resource, {MEASURED}
FROM usage_assignments a CROSS JOIN usage_hours h ON h.assignment = a.assignment
WHERE {_PAGE} AND h.from_us - a.ahead_us < :end AND max(h.to_us, h.from_us + 1) - a.ahead_us > :start
"""  # noqa: S608 (literals only)


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


def _parts(found: Sequence[Row]) -> Parts[Terms]:
    """The parts of each pod by labels and price."""
    split = ((*row[:3], row[3 : len(PRICE) + 4], row[len(PRICE) + 4 :]) for row in found)
    return parts_of(
        (uid, resource, start_us, (labels, price_of(*price) if price[0] else None))
        for uid, resource, start_us, price, labels in split
    )
