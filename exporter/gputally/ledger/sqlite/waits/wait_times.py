"""All waits that overlap a window with their prices, in pages: a report of a year must not need the memory for all."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from gputally.ledger.price_columns import PRICE, price_of
from gputally.ledger.wait_record import WaitTime
from gputally.model.placement.verdict import Reason
from gputally.model.placement.wait import WaitCause
from gputally.model.price import Price

Row = tuple[Any, ...]
_OF_PRICE: Final = len(PRICE) + 1
"""Columns of a price."""
_PAGE: Final = 10_000
_PRICE: Final = ", ".join(f"{of}.{column}" for of in ("p", "h") for column in ("price_key", *PRICE))
_PRICES: Final = """LEFT JOIN prices p ON p.price_key = w.price_key
LEFT JOIN prices h ON h.price_key = w.highest_price_key"""
_OVERLAPS: Final = "w.from_us < :end AND (w.to_us IS NULL OR w.to_us > :start)"
_WAITS: Final = f"""
SELECT w.namespace, w.pod_uid, w.from_us, w.to_us, w.name, w.tier, w.tenant, 1, w.quantity, w.reason, w.cause,
       w.occupying_tier, w.occupying_tenant, 0, ifnull(w.occupied, w.quantity), {_PRICE}
FROM waits w {_PRICES}
WHERE (w.pod_uid, w.from_us) > (:uid, :from) AND {_OVERLAPS}
ORDER BY w.pod_uid, w.from_us LIMIT {_PAGE}
"""  # noqa: S608 (literals only)
_UNCREATED: Final = f"""
SELECT w.namespace, w.workload_uid, w.from_us, w.to_us, w.name, w.tier, w.tenant, w.pods, w.quantity, w.reason, w.cause,
       '', '', w.is_at_least, 0, {_PRICE}
FROM uncreated_waits w {_PRICES}
WHERE (w.namespace, w.workload_uid, w.from_us) > (:namespace, :uid, :from) AND {_OVERLAPS}
ORDER BY w.namespace, w.workload_uid, w.from_us LIMIT {_PAGE}
"""  # noqa: S608 (literals only)


def read_wait_times(rows: Callable[..., list[Row]], bounds: Mapping[str, int]) -> Iterator[WaitTime]:
    """Waits that overlap the bounds, not clipped, those of a pod or workload one after the other."""
    yield from (_time(row, is_created=True) for row in _pages(rows, _WAITS, bounds))
    yield from (_time(row, is_created=False) for row in _pages(rows, _UNCREATED, bounds))


def _pages(rows: Callable[..., list[Row]], query: str, bounds: Mapping[str, int]) -> Iterator[Row]:
    return chain.from_iterable(_each_page(rows, query, bounds))


def _each_page(rows: Callable[..., list[Row]], query: str, bounds: Mapping[str, int]) -> Iterator[list[Row]]:
    after = {"namespace": "", "uid": "", "from": -(2**63)}
    while page := rows(query, {**bounds, **after}):
        yield page
        after = dict(zip(("namespace", "uid", "from"), page[-1], strict=False))


def _time(row: Row, *, is_created: bool) -> WaitTime:
    *own, reason, cause, tier, tenant, is_at_least, occupied = row[: -2 * _OF_PRICE]
    lowest, highest = (_price(row[first : first + _OF_PRICE or None]) for first in (-2 * _OF_PRICE, -_OF_PRICE))
    why = Reason(reason), WaitCause(cause), tier, tenant, lowest, is_created, bool(is_at_least)
    return WaitTime._make((*own, *why, occupied if tier else 0, highest))


def _price(columns: Row) -> Price | None:
    return None if columns[0] is None else price_of(*columns)
