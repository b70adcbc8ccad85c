"""A table is what its row type says: columns, their types, and the statements for them."""

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from enum import StrEnum
from operator import attrgetter

import pytest
from msgspec import Struct

from gputally.ledger.sqlite.schema import definition
from gputally.ledger.tables.schema import TABLES
from gputally.ledger.tables.statements import delete, increase, insert, insert_missing, select, upsert
from gputally.ledger.tables.table import AnyTable, BigInteger, Column, ColumnType, Index, Table


class Colour(StrEnum):
    RED = "red"


class Stored(Struct, frozen=True):
    """A thing.

    It has a colour.
    """

    name: str
    at_us: int
    size: BigInteger
    is_known: bool | None
    raw: bytes
    colour: Colour


class Counted(Struct, frozen=True):
    name: str
    count: int


STORED = Table("stored", Stored, key=("name", "at_us"), indexes=(Index("stored_at", ("at_us",), where="is_known"),))
NUMBERED = Table("numbered", Counted, number="id", key=("name",))
COUNTED = Table("counted", Counted, key=("name",))
LARGE = Table("large", Counted, key=("name", "count"), has_large_rows=True)


def test_columns_are_the_fields_of_the_row_with_their_types() -> None:
    assert STORED.columns == (
        Column("name", ColumnType.TEXT, nullable=False),
        Column("at_us", ColumnType.INTEGER, nullable=False),
        Column("size", ColumnType.BIG_INTEGER, nullable=False),
        Column("is_known", ColumnType.BOOLEAN, nullable=True),
        Column("raw", ColumnType.BYTES, nullable=False),
        Column("colour", ColumnType.TEXT, nullable=False),
    )
    assert STORED.rest == ("size", "is_known", "raw", "colour")
    assert STORED.text == "A thing. It has a colour."


def test_a_number_is_a_column_but_no_value_of_a_new_row() -> None:
    assert [column.name for column in NUMBERED.columns] == ["id", "name", "count"]
    assert NUMBERED.fields == ("name", "count")


def test_sqlite_stores_rows_by_their_key_or_by_a_number() -> None:
    assert definition(STORED) == (
        "CREATE TABLE stored (name TEXT NOT NULL, at_us INTEGER NOT NULL, size TEXT NOT NULL, is_known INTEGER, "
        "raw BLOB NOT NULL, colour TEXT NOT NULL, PRIMARY KEY (name, at_us)) WITHOUT ROWID;\n"
        "CREATE INDEX stored_at ON stored (at_us) WHERE is_known;"
    )
    assert definition(NUMBERED) == (
        "CREATE TABLE numbered (id INTEGER PRIMARY KEY, name TEXT NOT NULL, count INTEGER NOT NULL, UNIQUE (name));"
    )
    assert definition(LARGE) == (
        "CREATE TABLE large (name TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (name, count));"
    )
    assert definition(COUNTED) == "CREATE TABLE counted (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [(insert, None), (insert_missing, ("a", 1)), (upsert, ("a", 7)), (increase, ("a", 8))],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("table", [COUNTED, NUMBERED], ids=lambda table: table.name)
def test_a_row_with_a_known_key_is_refused_or_kept_or_replaced_or_added(
    table: AnyTable, statement: Callable[[AnyTable], str], expected: tuple[str, int] | None
) -> None:
    row = attrgetter(*table.fields)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(definition(table))
        connection.execute(statement(table), row(Counted("a", 1)))
        if expected is None:
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(statement(table), row(Counted("a", 7)))
        else:
            connection.execute(statement(table), row(Counted("a", 7)))
            assert connection.execute(select(table)).fetchall() == [expected]
            connection.execute(delete(table), ("a",))
            assert connection.execute(select(table)).fetchall() == []


def test_rows_are_deleted_by_the_key_or_by_some_columns() -> None:
    assert delete(STORED) == "DELETE FROM stored WHERE name = ? AND at_us = ?"
    assert delete(STORED, "colour") == "DELETE FROM stored WHERE colour = ?"


def test_each_table_of_a_ledger_has_a_name_and_a_text_and_a_key_of_its_own_columns() -> None:
    assert max(Counter(table.name for table in TABLES).values()) == 1
    for table in TABLES:
        assert table.text, table.name
        assert set(table.key) <= set(table.fields), table.name
        for index in table.indexes:
            assert index.name.startswith(table.name)
            assert set(index.columns) <= {column.name for column in table.columns}
