"""Sums of allocated time by the numbers of texts, terms and prices: three times as fast as by the texts of the views.

Rows of older schemas have their own query, on texts. Parameters are the window [:start, :end), the end of accounting
:accounted, and pods numbered (:after, :upto].
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import json

from gputally.ledger.cuts import pieces
from gputally.ledger.sqlite.segment_rows import PRICE, TERMS, Row, price_of
from gputally.model.allocation import Outcome
from gputally.model.price import Price

Rows = Callable[[str, Mapping[str, Any]], Sequence[Row]]
"""Runs a statement with these parameters, in one transaction."""

_NUMBERED: Final = {
    "namespace": "p.namespace_text",
    "node": "r.node_text",
    "job_kind": "r.job_kind_text",
    "job": "r.job_text",
    "outcome": "ifnull(r.outcome_text, 0)",
    "job_outcome": """ifnull(
        (SELECT outcome_text FROM job_outcomes WHERE job_uid_text = p.job_uid_text), ifnull(r.outcome_text, 0)
    )""",
}
"""The dimensions of a pod or revision whose texts have numbers."""
_NAME: Final = "name"
_OF_POD: Final = {_NAME, "namespace", "job_outcome"}
_FROM: Final = "max(start_us, :start) AS from_us"
_TO: Final = "min(ifnull(end_us, :accounted), :end) AS to_us"
_LAST_POD: Final = "SELECT ifnull(max(id), 0) FROM pods"
_ALL_TERMS: Final = f"SELECT id, {', '.join(TERMS)} FROM terms"  # noqa: S608 (literals only)
_ALL_PRICES: Final = f"SELECT id, price_key, {', '.join(PRICE)} FROM prices"  # noqa: S608 (literals only)
_TEXTS: Final = "SELECT id, text FROM texts WHERE id IN (SELECT value FROM json_each(:ids))"
_OLD: Final = "SELECT EXISTS (SELECT 1 FROM old_allocations)"

Key = tuple[Row, Price | None, int]
"""Labels, price and period."""
Sums = dict[Key, int]
"""GPU-time (µs·µGPU) by key."""


class ReadPlan(NamedTuple):
    """How to divide the window: into periods by `cuts`, and its reading into transactions of `page` rows."""

    cuts: Sequence[int]
    page: int


def read_sums(rows: Rows, bounds: Mapping[str, Any], by: Sequence[str], plan: ReadPlan) -> Sums:
    """The GPU-time of all segments by the dimensions `by`, price and period; a page has a number of pods."""
    own = [dimension for dimension in by if dimension not in TERMS]
    found = _numbered_sums(rows, bounds, own, plan)
    terms = {number: dict(zip(TERMS, values, strict=True)) for number, *values in rows(_ALL_TERMS, {})}
    prices = {number: price_of(*price) for number, *price in rows(_ALL_PRICES, {})}
    texts = {0: Outcome.UNKNOWN.value, **dict(rows(_TEXTS, {"ids": json.encode(_texts_in(found, own)).decode()}))}
    sums: Sums = {}
    for (*values, term, price, period), gpu_time in found.items():
        named = {each: value if each == _NAME else texts[value] for each, value in zip(own, values, strict=True)}
        key = tuple(named[each] if each in named else terms[term][each] for each in by), prices.get(price), period
        sums[key] = sums.get(key, 0) + gpu_time
    if rows(_OLD, {})[0][0]:
        _add_old(sums, rows(_old_query(by), bounds), len(by), plan.cuts)
    return sums


def _numbered_sums(rows: Rows, bounds: Mapping[str, Any], own: Sequence[str], plan: ReadPlan) -> dict[Row, int]:
    """GPU-time by the dimensions `own`, terms and price, all as numbers but names, and period."""
    sums: defaultdict[Row, int] = defaultdict(int)
    sql, cuts = _query(own), plan.cuts
    [(last,)] = rows(_LAST_POD, {})
    for after in range(0, last, plan.page):
        for *key, quantity, from_us, to_us in rows(sql, {**bounds, "after": after, "upto": after + plan.page}):
            if not cuts:  # the usual case
                sums[*key, 0] += quantity * (to_us - from_us)
                continue
            for piece in pieces(from_us, to_us, cuts):
                sums[*key, piece.period] += quantity * (piece.end_us - piece.start_us)
    return sums


def _texts_in(found: Iterable[Row], own: Sequence[str]) -> list[int]:
    places = [place for place, each in enumerate(own) if each != _NAME]
    return list({key[place] for key in found for place in places})


def _query(own: Sequence[str]) -> str:
    """Each latest segment, with the dimensions `own`; SQLite takes the other columns from the row of max()."""
    inner = "".join(f"{_NUMBERED.get(each, 'p.name')} AS {each}, " for each in own)
    key = ", ".join((*own, "terms", "price", "quantity"))
    pods = "CROSS JOIN pods p ON p.id = s.pod" if _OF_POD & set(own) else ""
    return f"""
SELECT {key}, from_us, to_us FROM (
    SELECT {inner}s.terms, s.price, s.quantity, max(s.number), {_FROM}, {_TO}
    FROM (
        SELECT pod, max(number), segments, node_text, job_kind_text, job_text, outcome_text
        FROM pod_revisions WHERE pod > :after AND pod <= :upto GROUP BY pod
    ) r
    CROSS JOIN pod_segments s ON s.pod = r.pod AND s.ordinal < r.segments {pods}
    GROUP BY s.pod, s.ordinal
)
WHERE from_us < to_us
"""  # noqa: S608 (dimensions only)


def _old_query(by: Sequence[str]) -> str:
    columns = ", ".join((*by, "price_key", *PRICE, "quantity"))
    return f"""
SELECT {columns}, from_us, to_us
FROM (
    SELECT *, {_FROM}, {_TO} FROM allocation_segments WHERE pod_uid IN (
        SELECT pod_uid FROM old_allocations EXCEPT SELECT uid FROM pods
    )
)
WHERE from_us < to_us
"""  # noqa: S608 (dimensions only)


def _add_old(sums: Sums, found: Iterable[Row], labels: int, cuts: Sequence[int]) -> None:
    for row in found:
        *price, quantity, from_us, to_us = row[labels:]
        for piece in pieces(from_us, to_us, cuts):
            key = row[:labels], price_of(*price) if price[0] else None, piece.period
            sums[key] = sums.get(key, 0) + quantity * (piece.end_us - piece.start_us)
