"""Sums of allocated time by the numbers of texts, terms and prices: three times as fast as by the texts of the views.

Rows of older schemas have their own query, on texts. Parameters are the window [:start, :end), the end of accounting
:accounted, and pods numbered (:after, :upto].
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import json

from gputally.ledger.sqlite.segment_rows import PRICE, TERMS, Row, price_of
from gputally.model.price import Price
from gputally.model.units import US_PER_SECOND

Rows = Callable[[str, Mapping[str, Any]], Sequence[Row]]
"""Runs a statement with these parameters, in one transaction."""

_NUMBERED: Final = {
    "namespace": "p.namespace_text",
    "node": "r.node_text",
    "job_kind": "r.job_kind_text",
    "job": "r.job_text",
}
"""The dimensions of a pod or revision whose texts have numbers."""
_NAME: Final = "name"
_SPAN: Final = "min(ifnull(end_us, :accounted), :end) - max(start_us, :start)"
_LAST_POD: Final = "SELECT ifnull(max(id), 0) FROM pods"
_ALL_TERMS: Final = f"SELECT id, {', '.join(TERMS)} FROM terms"  # noqa: S608 (literals only)
_ALL_PRICES: Final = f"SELECT id, price_key, {', '.join(PRICE)} FROM prices"  # noqa: S608 (literals only)
_TEXTS: Final = "SELECT id, text FROM texts WHERE id IN (SELECT value FROM json_each(:ids))"
_OLD: Final = "SELECT EXISTS (SELECT 1 FROM old_allocations)"

Sums = dict[tuple[Row, Price | None], int]
"""GPU-time (µs·µGPU) by labels and price."""


def read_sums(rows: Rows, bounds: Mapping[str, Any], by: Sequence[str], *, page_pods: int) -> Sums:
    """The GPU-time of all segments by the dimensions `by` and price; reads `page_pods` pods in each transaction."""
    own = [dimension for dimension in by if dimension not in TERMS]
    found = _numbered_sums(rows, bounds, own, page_pods=page_pods)
    terms = {number: dict(zip(TERMS, values, strict=True)) for number, *values in rows(_ALL_TERMS, {})}
    prices = {number: price_of(*price) for number, *price in rows(_ALL_PRICES, {})}
    texts: dict[int, str] = dict(rows(_TEXTS, {"ids": json.encode(_texts_in(found, own)).decode()}))
    sums: Sums = {}
    for (*values, term, price), gpu_time in found.items():
        named = {each: value if each == _NAME else texts[value] for each, value in zip(own, values, strict=True)}
        key = tuple(named[each] if each in named else terms[term][each] for each in by), prices.get(price)
        sums[key] = sums.get(key, 0) + gpu_time
    if rows(_OLD, {})[0][0]:
        _add_old(sums, rows, bounds, by)
    return sums


def _numbered_sums(rows: Rows, bounds: Mapping[str, Any], own: Sequence[str], *, page_pods: int) -> dict[Row, int]:
    """GPU-time by the dimensions `own`, terms and price, all as numbers but names."""
    sums: defaultdict[Row, int] = defaultdict(int)
    sql = _query(own)
    [(last,)] = rows(_LAST_POD, {})
    for after in range(0, last, page_pods):
        for row in rows(sql, {**bounds, "after": after, "upto": after + page_pods}):
            sums[row[:-2]] += row[-2] * row[-1]
    return sums


def _texts_in(found: Iterable[Row], own: Sequence[str]) -> list[int]:
    places = [place for place, each in enumerate(own) if each != _NAME]
    return list({key[place] for key in found for place in places})


def _query(own: Sequence[str]) -> str:
    """Each latest segment, with the dimensions `own`; SQLite takes the other columns from the row of max()."""
    inner = "".join(f"{_NUMBERED.get(each, 'p.name')} AS {each}, " for each in own)
    key = ", ".join((*own, "terms", "price", "quantity"))
    pods = "CROSS JOIN pods p ON p.id = s.pod" if {_NAME, "namespace"} & set(own) else ""
    return f"""
SELECT {key}, span_us FROM (
    SELECT {inner}s.terms, s.price, s.quantity, max(s.number), {_SPAN} AS span_us
    FROM (
        SELECT pod, max(number), segments, node_text, job_kind_text, job_text
        FROM pod_revisions WHERE pod > :after AND pod <= :upto GROUP BY pod
    ) r
    CROSS JOIN pod_segments s ON s.pod = r.pod AND s.ordinal < r.segments {pods}
    GROUP BY s.pod, s.ordinal
)
WHERE span_us > 0
"""  # noqa: S608 (dimensions only)


def _add_old(sums: Sums, rows: Rows, bounds: Mapping[str, Any], by: Sequence[str]) -> None:
    columns = ", ".join((*by, "price_key", *PRICE, "quantity"))
    sql = f"""
SELECT {columns}, sum(span_us / 1000000), sum(span_us % 1000000)
FROM (
    SELECT *, {_SPAN} AS span_us FROM allocation_segments WHERE pod_uid IN (
        SELECT pod_uid FROM old_allocations EXCEPT SELECT uid FROM pods
    )
)
WHERE span_us > 0
GROUP BY {columns}
"""  # noqa: S608 (dimensions only)
    for row in rows(sql, bounds):
        *labels_and_price, quantity, seconds, rest_us = row
        labels, price = labels_and_price[: len(by)], labels_and_price[len(by) :]
        key = tuple(labels), price_of(*price) if price[0] else None
        sums[key] = sums.get(key, 0) + quantity * (seconds * US_PER_SECOND + rest_us)
