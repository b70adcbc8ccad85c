"""Sums of measured usage, by the segments of the pods it belongs to.

Parameters are the window [:start, :end), the end of accounting :accounted, and assignments numbered (:after, :upto].
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from gputally.ledger.cuts import pieces
from gputally.ledger.sqlite.segment_rows import PRICE, Row, price_of
from gputally.ledger.sqlite.sums.allocated_time import ReadPlan
from gputally.ledger.sqlite.sums.names import Key, Rows
from gputally.model.price import Price

Amounts = tuple[int, ...]
"""Measured, used and burst (µs·µGPU), and energy (mJ)."""
Terms = tuple[Row, Price | None]
"""Labels and price."""

_LAST: Final = "SELECT ifnull(max(assignment), 0) FROM usage_assignments"
_PAGE: Final = "a.assignment > :after AND a.assignment <= :upto AND a.pod_uid <> ''"
_HOURS: Final = f"""
SELECT a.pod_uid, a.resource, h.from_us - a.ahead_us, h.to_us - a.ahead_us, h.measured, h.used, h.burst, h.energy
FROM usage_assignments a CROSS JOIN usage_hours h ON h.assignment = a.assignment
WHERE {_PAGE} AND h.from_us - a.ahead_us < :end AND h.to_us - a.ahead_us > :start
"""  # noqa: S608 (literals only)


class _Hour(NamedTuple):
    """What was measured in [from_us, to_us), by our clock."""

    from_us: int
    to_us: int
    amounts: Amounts

    def upto(self, at_us: int) -> Amounts:
        """The amounts before `at_us`, in proportion to time."""
        span_us = self.to_us - self.from_us
        elapsed_us = min(max(at_us, self.from_us), self.to_us) - self.from_us
        return tuple(amount * elapsed_us // span_us for amount in self.amounts)


class _Part(NamedTuple):
    """A pod's labels and price from `from_us` on."""

    from_us: int
    terms: Terms


def read_measured(rows: Rows, bounds: Mapping[str, int], by: Sequence[str], plan: ReadPlan) -> dict[Key, list[int]]:
    """The amounts by the dimensions `by`, price and period; a page has a number of assignments.

    Each hour is divided in proportion to time where the window, a period or the labels of its pod end.
    """
    sums: defaultdict[Key, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    [(last,)] = rows(_LAST, {})
    for after in range(0, last, plan.page):
        values = {**bounds, "after": after, "upto": after + plan.page}
        known = _parts(rows(_segments(by), values))
        for uid, resource, from_us, to_us, *amounts in rows(_HOURS, values):
            if parts := known.get((uid, resource)) or known.get((uid, "")):
                hour = _Hour(from_us, max(to_us, from_us + 1), tuple(amounts))
                for key, some in _divided(hour, parts, bounds, plan.cuts):
                    sums[key][:] = map(int.__add__, sums[key], some)
    return dict(sums)


def _segments(by: Sequence[str]) -> str:
    columns = ", ".join(("price_key", *PRICE, *by))
    return f"""
SELECT pod_uid, resource, start_us, {columns} FROM allocation_segments
WHERE pod_uid IN (SELECT a.pod_uid FROM usage_assignments a WHERE {_PAGE})
ORDER BY pod_uid, start_us, ordinal
"""  # noqa: S608 (dimensions only)


def _parts(found: Sequence[Row]) -> dict[tuple[str, str], list[_Part]]:
    """The parts of each pod by resource, and by "" those of all its resources, each in the order of time.

    A part ends where labels or price change.
    """
    pods: defaultdict[tuple[str, str], list[_Part]] = defaultdict(list)
    for uid, resource, start_us, *values in found:
        price, labels = values[: len(PRICE) + 1], values[len(PRICE) + 1 :]
        terms = tuple(labels), price_of(*price) if price[0] else None
        for parts in (pods[uid, resource], pods[uid, ""]):
            if not parts or parts[-1].terms != terms:
                parts.append(_Part(start_us, terms))
    return pods


def _divided(
    hour: _Hour, parts: Sequence[_Part], bounds: Mapping[str, int], cuts: Sequence[int]
) -> Iterator[tuple[Key, Amounts]]:
    """The amounts within the window by part and period; the outer parts extend beyond their bounds."""
    start_us, end_us = max(bounds["start"], hour.from_us), min(bounds["end"], hour.to_us)
    changes = [min(max(part.from_us, start_us), end_us) for part in parts[1:]]
    for part, (from_us, to_us) in zip(parts, pairwise([start_us, *changes, end_us]), strict=True):
        for piece in pieces(from_us, to_us, cuts):
            amounts = map(int.__sub__, hour.upto(piece.end_us), hour.upto(piece.start_us))
            yield (*part.terms, piece.period), tuple(amounts)
