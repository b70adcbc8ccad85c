"""Sums of the time that preemptions destroyed, by the segments and the measured usage of the pods that lost it.

Parameters are the window [:start, :end), the end of accounting :accounted, and the UIDs :uids (JSON) of a page of pods.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import json

from gputally.ledger.measured_sums import LostSums, MeasuredHour, parts_of
from gputally.ledger.preemption_records import LostTime
from gputally.ledger.price_columns import PRICE, price_of
from gputally.ledger.records import Window
from gputally.ledger.sqlite.allocated_time import ReadPlan
from gputally.ledger.sqlite.daily_sums import daily_lost
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.sqlite.usage import MEASURED
from gputally.ledger.sqlite.victims import lost_pod
from gputally.model.lost_work import CheckpointSource, LostPod
from gputally.model.price import Price

if TYPE_CHECKING:
    from gputally.ledger.row_labels import Key

_PAGE: Final = """
SELECT pod_uid, from_us, to_us, basis FROM lost_pods l
WHERE pod_uid > :after AND (
    (from_us < :end AND to_us > :start) OR EXISTS (
        SELECT 1 FROM usage_assignments a CROSS JOIN usage_hours h ON h.assignment = a.assignment
        WHERE a.pod_uid = l.pod_uid
          AND h.from_us - a.ahead_us < :end AND max(h.to_us, h.from_us + 1) - a.ahead_us > :start
    )
)
ORDER BY pod_uid LIMIT :pods
"""
"""Use may be dated outside the lost time, by the clock of the node."""
_HOURS: Final = f"""
SELECT a.pod_uid, a.resource, {MEASURED}
FROM json_each(:uids) AS wanted
CROSS JOIN usage_assignments a ON a.pod_uid = wanted.value
CROSS JOIN usage_hours h ON h.assignment = a.assignment
"""  # noqa: S608 (literals only)


def read_lost(rows: Rows, bounds: Mapping[str, int], by: Sequence[str], plan: ReadPlan) -> list[LostTime]:
    """The time by the dimensions `by`, price, period and basis; a page has a number of pods."""
    sums: defaultdict[tuple[Key, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for lost in _pages(rows, bounds, plan.page):
        page = _page_sums(rows, bounds, by, lost=lost, cuts=plan.cuts)
        for ((labels, price), period, basis), amounts in page.found.items():
            known = sums[(labels, price, period), basis.value]
            known[:] = map(int.__add__, known, amounts)
    for key, rolled in daily_lost(rows, bounds, by, plan.cuts):
        sums[key][:] = map(int.__add__, sums[key], rolled)
    return [
        LostTime(labels, price, CheckpointSource(basis), gpu_time, measured, used, burst, period)
        for ((labels, price, period), basis), (gpu_time, measured, used, burst) in sums.items()
        if gpu_time or measured
    ]


def _pages(rows: Rows, bounds: Mapping[str, int], pods: int) -> Iterator[dict[str, LostPod]]:
    after = ""
    while found := rows(_PAGE, {**bounds, "after": after, "pods": pods}):
        yield {row[0]: lost_pod(row) for row in found}
        after = found[-1][0]


def _page_sums(
    rows: Rows, bounds: Mapping[str, int], by: Sequence[str], *, lost: Mapping[str, LostPod], cuts: Sequence[int]
) -> LostSums[tuple[Row, Price | None]]:
    uids = json.encode(list(lost)).decode()
    sums = LostSums[tuple[Row, Price | None]](lost, Window(bounds["start"], bounds["end"]), cuts)
    parts = list[tuple[str, str, int, tuple[Row, Price | None]]]()
    for uid, resource, start_us, end_us, quantity, *rest in rows(_segments(by), {**bounds, "uids": uids}):
        price, labels = rest[: len(PRICE) + 1], tuple(rest[len(PRICE) + 1 :])
        terms = labels, price_of(*price) if price[0] else None
        sums.add_allocated(uid, (start_us, end_us), quantity, terms)
        parts.append((uid, resource, start_us, terms))
    hours = rows(_HOURS, {"uids": uids})
    sums.add_measured(
        ((uid, of, MeasuredHour(from_us, to_us, tuple(some))) for uid, of, from_us, to_us, *some in hours),
        parts_of(parts),
    )
    return sums


def _segments(by: Sequence[str]) -> str:
    columns = ", ".join(("price_key", *PRICE, *by))
    return f"""
SELECT pod_uid, resource, start_us, ifnull(end_us, :accounted), quantity, {columns} FROM allocation_segments
WHERE pod_uid IN (SELECT value FROM json_each(:uids))
ORDER BY pod_uid, start_us, ordinal
"""  # noqa: S608 (dimensions only)
