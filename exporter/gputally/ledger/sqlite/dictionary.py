"""Deduplicates recurring rows: each is stored once and referenced by its number."""

import sqlite3
from collections.abc import Sequence
from typing import Any

Row = tuple[Any, ...]
_CACHE_SIZE = 20_000
"""The cache is cleared at this size, since the number of job names is unbounded."""
_KEPT = 4096
"""At most as many stay between transactions: many are those of pods that do not recur."""


class Dictionary:
    """The rows of `table`, which has a number `id` and is unique by the `key` columns."""

    def __init__(
        self, connection: sqlite3.Connection, table: str, key: Sequence[str], more: Sequence[str] = ()
    ) -> None:
        columns, marks = ", ".join((*key, *more)), ", ".join("?" * (len(key) + len(more)))
        found = " AND ".join(f"{name} = ?" for name in key)
        self._insert = (
            f"INSERT INTO {table} ({columns}) VALUES ({marks}) "  # noqa: S608 (literals only)
            f"ON CONFLICT ({', '.join(key)}) DO NOTHING RETURNING id"
        )
        self._select = f"SELECT id FROM {table} WHERE {found}"  # noqa: S608 (literals only)
        self._by_number = f"SELECT {columns} FROM {table} WHERE id = ?"  # noqa: S608 (literals only)
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
