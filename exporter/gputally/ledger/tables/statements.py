"""Statements for the rows of a table, in the SQL that SQLite and PostgreSQL have in common.

Those that write have a mark (?) for every value of a row, in the order of `fields` or of those of the table.
"""

from collections.abc import Iterable, Sequence

from gputally.ledger.tables.table import AnyTable


def listed(names: Iterable[str], *, of: str = "") -> str:
    """Names of columns, of the relation `of` where a statement has several."""
    return ", ".join(f"{of}.{name}" if of else name for name in names)


def marks(names: Iterable[str]) -> str:
    """A mark for the value of each column."""
    return listed("?" for _ in names)


def select(table: AnyTable) -> str:
    """Reads all fields of all rows, in no order."""
    return f"SELECT {listed(table.fields)} FROM {table.name}"  # noqa: S608 (declared names)


def insert(table: AnyTable, fields: Sequence[str] = ()) -> str:
    """Adds a row that must be new."""
    names = fields or table.fields
    return f"INSERT INTO {table.name} ({listed(names)}) VALUES ({marks(names)})"  # noqa: S608 (declared names)


def insert_missing(table: AnyTable) -> str:
    """Adds a row unless there is one with its key, which stays as it is."""
    return f"{insert(table)} ON CONFLICT DO NOTHING"


def upsert(table: AnyTable, fields: Sequence[str] = ()) -> str:
    """Adds a row, or replaces the one with its key; indexes of values that stay are not written again."""
    return f"{insert(table, fields)} {on_conflict(table)}"


def on_conflict(table: AnyTable) -> str:
    """What a statement that inserts ends with, so that it replaces rows with the same key."""
    return (
        f"ON CONFLICT ({listed(table.key)}) DO UPDATE SET {listed(f'{name} = excluded.{name}' for name in table.rest)}"
    )


def increase(table: AnyTable) -> str:
    """Adds a row, or its values to those of the row with its key."""
    sums = listed(f"{name} = {table.name}.{name} + excluded.{name}" for name in table.rest)
    return f"{insert(table)} ON CONFLICT ({listed(table.key)}) DO UPDATE SET {sums}"


def delete(table: AnyTable, *columns: str) -> str:
    """Deletes the rows with these values of `columns`, or else of the key."""
    found = " AND ".join(f"{name} = ?" for name in columns or table.key)
    return f"DELETE FROM {table.name} WHERE {found}"  # noqa: S608 (declared names)
