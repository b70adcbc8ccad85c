"""All waits that overlap a window with their prices, in pages: a report of a year must not need the memory for all."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from gputally.ledger.price_columns import PRICE, price_of
from gputally.ledger.wait_record import WaitTime
from gputally.model.placement.verdict import Reason
from gputally.model.placement.wait import WaitCause

Row = tuple[Any, ...]
_PAGE: Final = 10_000
_PRICE: Final = ", ".join(("p.price_key", *(f"p.{column}" for column in PRICE)))
_OVERLAPS: Final = "w.from_us < :end AND (w.to_us IS NULL OR w.to_us > :start)"
_WAITS: Final = f"""
SELECT w.namespace, w.pod_uid, w.from_us, w.to_us, w.name, w.tier, w.tenant, 1, w.quantity, w.reason, w.cause,
       w.occupying_tier, w.occupying_tenant, 0, {_PRICE}
FROM waits w LEFT JOIN prices p ON p.price_key = w.price_key
WHERE (w.pod_uid, w.from_us) > (:uid, :from) AND {_OVERLAPS}
ORDER BY w.pod_uid, w.from_us LIMIT {_PAGE}
"""  # noqa: S608 (literals only)
_UNCREATED: Final = f"""
SELECT w.namespace, w.workload_uid, w.from_us, w.to_us, w.name, w.tier, w.tenant, w.pods, w.quantity, w.reason, w.cause,
       '', '', w.is_at_least, {_PRICE}
FROM uncreated_waits w LEFT JOIN prices p ON p.price_key = w.price_key
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
    *own, reason, cause, tier, tenant, is_at_least, key, currency, per_gpu_hour, basis, purchase = row
    price = None if key is None else price_of(key, currency, per_gpu_hour, basis, purchase)
    return WaitTime._make((*own, Reason(reason), WaitCause(cause), tier, tenant, price, is_created, bool(is_at_least)))
