"""The schema of ledger files: its migrations, and what a file lacks."""

import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Final

from gputally.errors import LedgerError

INCREMENTAL: Final = 2
SHRINKABLE: Final = f"PRAGMA auto_vacuum = {INCREMENTAL}"
"""Lets a new file shrink later, as the first statement of the transaction that creates it. On its own it would write a
header, which does not identify the file as a ledger yet, if the process is killed then."""


APPLICATION_ID: Final = 0x47544C59
"""Identifies ledgers among SQLite files: "GTLY"."""
LAST_READERS: Final = {0x67707574: "2e81ba83", 0x67746C79: "25890acc"}
"""What identifies the ledgers that development versions before 0.1.0 wrote, each with the last commit that reads it."""


def newest_schema() -> int:
    """The schema that this version reads and writes."""
    return migrations()[-1][0]


def migrations() -> list[tuple[int, str]]:
    """(version, SQL) of every schema step, in order."""
    folder = files("gputally.ledger.sqlite") / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text()) for name in names]


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
    """The first table, column, index or view that the schema of the ledger has, and its file lacks; in words.

    The schema must not be newer than this version's.
    """
    version = version_of(connection)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as whole:
        migrate(whole, [step for step in migrations() if step[0] <= version])
        if not version:
            return "it has no schema"
        found, parts = _parts(connection), _parts(whole)
        for kind, name in parts:
            if (kind, name) not in found:
                return f"the {kind} {name} is missing"
        for kind, name in parts:
            columns = _columns(connection, kind, name)
            for column in _columns(whole, kind, name):
                if column not in columns:
                    return f"the column {column[0]} of the {kind} {name} is missing or has another type"
    return None


def _parts(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Kind and name of all tables, then of all views, triggers and indexes."""
    return connection.execute("SELECT type, name FROM sqlite_master ORDER BY type = 'table' DESC, rowid").fetchall()


def _columns(connection: sqlite3.Connection, kind: str, name: str) -> list[tuple[object, ...]]:
    """Name and definition of the columns of a table or view; of an index, their order; none for a trigger."""
    if kind == "index":
        return [(column, place) for place, _, column in connection.execute(f"PRAGMA index_info({name})")]
    return [column[1:] for column in connection.execute(f"PRAGMA table_info({name})")] if kind != "trigger" else []
