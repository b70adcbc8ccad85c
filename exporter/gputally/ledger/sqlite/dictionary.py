"""Texts, terms and prices are stored once: rows name them by number."""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import json

from gputally.ledger.price_columns import price_of
from gputally.ledger.row_labels import RowLabels
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.tables import allocations
from gputally.ledger.tables.statements import insert_missing, listed
from gputally.ledger.tables.table import AnyTable
from gputally.model.allocation import Segment, State
from gputally.model.price import Price

Span = tuple[int, int | None, int]
"""Start and end (µs; None while it lasts) and µGPU."""
_STATES: Final = {state.value: state for state in State}
TERMS: Final = allocations.TERMS.fields
_CACHE_SIZE = 20_000
"""The cache is cleared at this size, since the number of job names is unbounded."""
_KEPT = 4096
"""At most as many stay between transactions: many are those of pods that do not recur."""
TEXTS: Final = "SELECT id, text FROM texts WHERE id IN (SELECT value FROM json_each(:ids))"
_ALL_TERMS: Final = f"SELECT id, {listed(TERMS)} FROM terms"  # noqa: S608 (literals only)
_ALL_PRICES: Final = f"SELECT id, {listed(allocations.PRICES.fields)} FROM prices"  # noqa: S608 (literals only)


def segment_of(span: Span, terms: Sequence[str], price: Price | None) -> Segment:
    """The segment with these TERMS."""
    resource, state, tier, tenant, queue, gpu_model, pool, *labels = terms
    start_us, end_us, quantity = span
    return Segment(
        resource=resource,
        start_us=start_us,
        end_us=end_us,
        state=_STATES[state],
        quantity=quantity,
        tier=tier,
        tenant=tenant,
        queue=queue,
        gpu_model=gpu_model,
        pool=pool,
        price=price,
        labels=_labels(*labels, state),
    )


@lru_cache(maxsize=65_536)
def _labels(tier: str, tenant: str, gpu_model: str, state: str) -> tuple[str, str, str, str]:
    """A shared tuple for the thousands of pods with the same labels."""
    return tier, tenant, gpu_model, state


class Dictionary:
    """The rows of `table` by their number. Its fields begin with those of the key."""

    def __init__(self, connection: sqlite3.Connection, table: AnyTable) -> None:
        found = " AND ".join(f"{name} = ?" for name in table.fields if name in table.key)
        self._insert = f"{insert_missing(table)} RETURNING {table.number}"
        self._select = f"SELECT {table.number} FROM {table.name} WHERE {found}"  # noqa: S608 (declared names)
        self._by_number = f"SELECT {listed(table.fields)} FROM {table.name} WHERE {table.number} = ?"  # noqa: S608 (declared names)
        self._connection = connection
        self._numbers: dict[Row, int] = {}
        self._rows: dict[int, Row] = {}

    def number(self, key: Row, more: Row = ()) -> int:
        """The number of the row with this key; adds the row if it is missing."""
        number = self._numbers.get(key)
        if number is None:
            new = self._connection.execute(self._insert, key + more).fetchone()  # the common case
            number = (new or self._connection.execute(self._select, key).fetchone())[0]
            if len(self._numbers) >= _CACHE_SIZE:
                self.forget()
            self._numbers[key] = number
        return number

    def row(self, number: int) -> Row:
        """The row with this number."""
        row = self._rows.get(number)
        if row is None:
            row = self._connection.execute(self._by_number, (number,)).fetchone()
            if row is None:
                raise LookupError(number)
            self._rows[number] = row
        return row

    def trim(self) -> None:
        """Clear a large cache, after a transaction."""
        if len(self._numbers) > _KEPT:
            self.forget()

    def forget(self) -> None:
        """Clear the cache: numbers from a transaction that was rolled back are invalid."""
        self._numbers.clear()
        self._rows.clear()


class Numbered:
    """See `Meanings`."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._terms: dict[int, Mapping[str, str]] = {}

    def term(self, number: int) -> Mapping[str, str]:
        """See `Meanings.term`; they may have been written during the read."""
        if number not in self._terms:
            self._terms = {each: dict(zip(TERMS, row, strict=True)) for each, *row in self._rows(_ALL_TERMS, {})}
        return self._terms[number]

    def prices(self) -> Mapping[int, Price]:
        """See `Meanings.prices`."""
        return {number: price_of(*price) for number, *price in self._rows(_ALL_PRICES, {})}

    def texts(self, numbers: Iterable[int]) -> Mapping[int, str]:
        """See `Meanings.texts`."""
        return dict(self._rows(TEXTS, {"ids": json.encode([*numbers]).decode()}))


def labels_of(rows: Rows, own: Sequence[str], found: Collection[Row]) -> RowLabels:
    """Names rows of numbers, with the values of `own` dimensions of pods and revisions."""
    return RowLabels(Numbered(rows), own, rows=found, jobs=())
