"""The schema of ledger files: how new ones are made, the migrations of older ones, and what a file lacks."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Final

from gputally.errors import LedgerError
from gputally.ledger.tables.schema import TABLES
from gputally.ledger.tables.statements import listed
from gputally.ledger.tables.table import AnyTable, ColumnType

INCREMENTAL: Final = 2
SHRINKABLE: Final = f"PRAGMA auto_vacuum = {INCREMENTAL}"
"""Lets a new file shrink later, as the first statement of the transaction that creates it. On its own it would write a
header, which does not identify the file as a ledger yet, if the process is killed then."""


APPLICATION_ID: Final = 0x47544C59
"""Identifies ledgers among SQLite files: "GTLY"."""
LAST_READERS: Final = {0x67707574: "2e81ba83", 0x67746C79: "25890acc"}
"""What identifies the ledgers that development versions before 0.1.0 wrote, each with the last commit that reads it."""
_DEFINITIONS: Final = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'table' DESC, rowid"
FIRST: Final = 1
"""The schema of 0.1.0. Each later one has a migration, which changes the files of the one before."""
VIEWS: Final = "views.sql"
SQL_TYPES: Final = {
    ColumnType.BOOLEAN: "INTEGER",
    ColumnType.INTEGER: "INTEGER",
    ColumnType.BIG_INTEGER: "TEXT",
    ColumnType.TEXT: "TEXT",
    ColumnType.BYTES: "BLOB",
}


def newest_schema() -> int:
    """The schema that this version reads and writes."""
    return max([FIRST, *(number for number, _ in migrations())])


def migrations() -> list[tuple[int, str]]:
    """(version, SQL) of every schema step since the first schema, in order."""
    return [(int(name.split("_")[0]), script) for name, script in _scripts() if name != VIEWS]


def _scripts() -> Iterator[tuple[str, str]]:
    folder = files("gputally.ledger.sqlite") / "sql"
    for name in sorted(entry.name for entry in folder.iterdir()):
        yield name, (folder / name).read_text()


def new_schema() -> str:
    """The SQL that makes all tables, indexes and views of a new file."""
    return "\n".join([*map(definition, TABLES), views()])


def views() -> str:
    """The SQL that makes the views, each after a comment that says what a row is."""
    return dict(_scripts())[VIEWS]


def definition(table: AnyTable) -> str:
    """The SQL that makes a table with its indexes. Rows are stored by their key, or by a number if they have one."""
    numbered_by = table.number or _only_number(table)
    primary = (numbered_by,) if numbered_by else table.key
    parts = [
        f"{column.name} {SQL_TYPES[column.type]}"
        + (" PRIMARY KEY" if primary == (column.name,) else "" if column.nullable else " NOT NULL")
        for column in table.columns
    ]
    if len(primary) > 1:
        parts.append(f"PRIMARY KEY ({listed(primary)})")
    if primary != table.key:
        parts.append(f"UNIQUE ({listed(table.key)})")
    indexes = (
        f"CREATE INDEX {each.name} ON {table.name} ({listed(each.columns)})"
        + (f" WHERE {each.where};" if each.where else ";")
        for each in table.indexes
    )
    order = "" if numbered_by or table.has_large_rows else " WITHOUT ROWID"
    made = f"CREATE TABLE {table.name} ({', '.join(parts)}){order};"
    return "\n".join((made, *indexes))


def _only_number(table: AnyTable) -> str:
    """The one integer that is the key of a table, by which SQLite numbers rows anyway."""
    types = {column.name: column.type for column in table.columns}
    return table.key[0] if len(table.key) == 1 and types[table.key[0]] is ColumnType.INTEGER else ""


def expect_current(path: Path, version: int) -> None:
    """Raises: LedgerError if `version` is not the schema that this version reads."""
    newest = newest_schema()
    if version != newest:
        remedy = (
            "start its aggregator, which upgrades it, and copy it again if this is a copy"
            if version < newest
            else "run the newer gputally"
        )
        raise LedgerError(f"{path}: has schema {version}, but this gputally reads {newest}; {remedy}")


def version_of(connection: sqlite3.Connection) -> int:
    """The schema of the ledger."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def create(connection: sqlite3.Connection) -> None:
    """Make a ledger of the newest schema in an empty database."""
    migrate(connection, [(newest_schema(), new_schema())])


def migrate(connection: sqlite3.Connection, steps: list[tuple[int, str]]) -> None:
    """Apply the missing `steps` in one transaction, so that the file matches its backup until the commit.

    A new file is not in WAL mode yet, so that its header on disk identifies it from the first commit on.
    """
    version = version_of(connection)
    missing = [(number, script) for number, script in steps if number > version]
    if missing:
        marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {missing[-1][0]}"
        scripts = ";\n".join(script for _, script in missing)
        begin = f"BEGIN; {SHRINKABLE}" if is_new(connection) else "BEGIN IMMEDIATE"
        connection.executescript(f"{begin}; {scripts};\n{marks}; COMMIT;")


def is_new(connection: sqlite3.Connection) -> bool:
    """Whether the file is empty."""
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    return pages == 0


def missing_part(connection: sqlite3.Connection) -> str | None:
    """The first table, column, index or view that the ledger lacks, or would lack once it is upgraded; in words.

    Its schema must not be newer than this version's.
    """
    version = version_of(connection)
    if not version:
        return "it has no schema"
    definitions = connection.execute(_DEFINITIONS).fetchall()
    with closing(_in_memory()) as found, closing(_in_memory()) as whole:
        create(whole)
        try:
            for (sql,) in definitions:
                found.execute(sql)  # one statement: SQLite reads no further, and the file may be anybody's
            found.execute(f"PRAGMA user_version = {version}")
            migrate(found, migrations())
        except sqlite3.Error as error:
            return f"it cannot be upgraded: {error}"
        return _difference(found, whole)


def _in_memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def _difference(found: sqlite3.Connection, whole: sqlite3.Connection) -> str | None:
    """What `found` lacks of the schema of `whole`."""
    there, parts = _parts(found), _parts(whole)
    for kind, name in parts:
        if (kind, name) not in there:
            return f"the {kind} {name} is missing"
    for kind, name in parts:
        columns = _columns(found, kind, name)
        for column in _columns(whole, kind, name):
            if column not in columns:
                return f"the column {column[0]} of the {kind} {name} is missing or has another type"
    return None


def _parts(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Kind and name of all tables, then of all views, triggers and indexes."""
    return connection.execute("SELECT type, name FROM sqlite_master ORDER BY type = 'table' DESC, rowid").fetchall()


def _columns(connection: sqlite3.Connection, kind: str, name: str) -> list[tuple[object, ...]]:
    """Columns of a table or view, with type and place in the key; of an index, with their order; none for a trigger.

    Columns that a migration added come last, and have a default that is not declared: each row that is written has all.
    """
    if kind == "index":
        return [(column, place) for place, _, column in connection.execute(f"PRAGMA index_info({name})")]
    if kind == "trigger":
        return []
    return connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (name,)).fetchall()
