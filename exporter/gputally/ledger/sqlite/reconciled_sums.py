"""The sums that the ledger computes from its own rows, to compare them with those of the counters.

Each write adds by how much the rows that it touches change them, so no write depends on the length of the ledger. What
retention deletes stays in the sums, as it does in the counters.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from gputally.accounting.changes import Changes
from gputally.accounting.totals.total import RECONCILED, Lines, Total
from gputally.ledger.price_columns import PRICE, price_of
from gputally.ledger.protocol import Line
from gputally.ledger.sqlite.rows import Row

_PRICE: Final = ", ".join(f"p.{column}" for column in ("price_key", *PRICE))
_LINES: Final = f"""
SELECT {{quantity}} AS weight, sum(to_us - from_us), sum((to_us IS NULL) * (from_us - :base)), sum(to_us IS NULL),
       {_PRICE}
FROM {{rows}} LEFT JOIN prices p ON p.price_key = w.price_key
GROUP BY weight, p.price_key
"""  # noqa: S608 (literals only)
"""SQLite adds up the times of equal quantities and prices, which fit into 64 bits; open waits from :base on."""
_WAITS: Final = _LINES.format(
    quantity="quantity",
    rows="json_each(:keys) k CROSS JOIN waits w ON w.pod_uid = json_extract(k.value, '$[0]') "
    "AND w.from_us = json_extract(k.value, '$[1]')",
)
_UNCREATED: Final = _LINES.format(
    quantity="pods * quantity",
    rows="json_each(:keys) k CROSS JOIN uncreated_waits w ON w.namespace = json_extract(k.value, '$[0]') "
    "AND w.workload_uid = json_extract(k.value, '$[1]') AND w.from_us = json_extract(k.value, '$[2]')",
)
_LOST: Final = """
SELECT gpu_time, costs FROM json_each(:keys) k CROSS JOIN lost_work ON victim_uid = k.value
"""


def touched_sums(connection: sqlite3.Connection, changes: Changes) -> Lines:
    """The sums of the waits and losses that `changes` write, as the ledger has them now."""
    base = {"base": changes.at_us}
    found: Lines = {}
    if changes.waits:
        rows = connection.execute(_WAITS, base | _keys(changes.waits))
        found[Total.PENDING], found[Total.PENDING_COST] = _lines(rows, changes.at_us)
    if changes.uncreated_waits:
        rows = connection.execute(_UNCREATED, base | _keys(changes.uncreated_waits))
        found[Total.UNCREATED], found[Total.UNCREATED_COST] = _lines(rows, changes.at_us)
    if changes.lost_work:
        rows = connection.execute(_LOST, _keys(changes.lost_work))
        found[Total.DISRUPTION_LOST], found[Total.DISRUPTION_LOST_COST] = _losses(rows)
    return found


def minus(lines: Lines, others: Lines) -> Lines:
    """The difference of each line; a missing one is 0."""
    pairs = ((each, lines.get(each, (0, 0)), others.get(each, (0, 0))) for each in {**lines, **others})
    return {each: (a - other_a, b - other_b) for each, (a, b), (other_a, other_b) in pairs}


def stored_sums(connection: sqlite3.Connection) -> Lines:
    """The sums as of the last write; all are 0 in a new ledger."""
    meta = dict(connection.execute("SELECT key, value FROM meta"))
    if "accounting_start_us" not in meta:
        return dict.fromkeys(RECONCILED, (0, 0))
    names = {total: _names(total) for total in RECONCILED}
    return {total: (int(meta[a]), int(meta[b])) for total, (a, b) in names.items()}


def increased(stored: Lines, more: Lines) -> Lines:
    """The sums after a write that added `more`."""
    return stored | {total: (stored[total][0] + a, stored[total][1] + b) for total, (a, b) in more.items()}


def sum_rows(sums: Lines) -> Iterator[tuple[str, str]]:
    """The rows of `meta` that store them."""
    return (pair for total, line in sums.items() for pair in zip(_names(total), map(str, line), strict=True))


def _names(total: Total) -> tuple[str, str]:
    """The keys of a and b in `meta`."""
    return f"balance_{total.value}_a", f"balance_{total.value}_b"


def _keys(changed: Iterable[str | tuple[str | int, ...]]) -> dict[str, str]:
    return {"keys": msgspec.json.encode(list(changed)).decode()}


def _lines(rows: Iterable[Row], base_us: int) -> tuple[Line, Line]:
    """The lines of GPU-time and of cost."""
    a = b = cost_a = cost_b = 0
    for weight, closed_us, open_us, lasting, *price in rows:
        more_a, more_b = weight * ((closed_us or 0) - open_us - lasting * base_us), weight * lasting
        rate = price_of(*price).rate if price[0] is not None else 0
        a, b, cost_a, cost_b = a + more_a, b + more_b, cost_a + more_a * rate, cost_b + more_b * rate
    return (a, b), (cost_a, cost_b)


def _losses(rows: Iterable[Sequence[Any]]) -> tuple[Line, Line]:
    """The lines of lost GPU-time and of its cost, which are final amounts."""
    found = [(int(gpu_time), json.loads(costs)) for gpu_time, costs in rows]
    return (sum(each for each, _ in found), 0), (sum(int(cost) for _, costs in found for _, cost in costs), 0)
