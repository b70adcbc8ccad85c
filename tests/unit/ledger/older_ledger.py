"""Ledgers as programs of older schemas left them."""

import sqlite3
from contextlib import closing
from pathlib import Path

from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import pod, segment, step

NEWEST = schema.migrations()[-1][0]
LEFT_OUT = {"exposed_us"}
"""Columns that an upgrade changes."""
RENAMED = {
    "holder": "assignment",
    "usage_holders": "usage_assignments",
    "unheld_usage": "unallocated_usage",
    "admitted": "known_values",
    "blind_from_us": "gap_from_us",
    "blind_to_us": "gap_to_us",
}
"""Tables and columns that have another name today."""
PLAIN_NAMES = 7
"""The schema that renamed tables, columns and keys."""
PODS = ("pod-a", "pod-b", "pod-c")


def written_by(version: int, path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Make a ledger as a program of that schema left it, with rows; what is in it."""
    recent = path.with_name("recent.db")
    with SqliteLedger(recent) as ledger:
        ledger.bind("uid-1")
        ledger.write(step(*(pod(name, segment(1000, 2000)) for name in PODS)))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.migrate(connection, schema.migrations()[:version])
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"ATTACH '{recent}' AS recent")
        for table, columns in tables(connection).items():
            connection.execute(
                f"INSERT INTO main.{table} ({columns}) SELECT {today(columns)} FROM recent.{today(table)}"
            )
        connection.execute("DELETE FROM meta WHERE key LIKE '%_from_us'")  # later programs keep these
        if version < PLAIN_NAMES:
            connection.execute("UPDATE meta SET key = 'opened_us' WHERE key = 'accounting_start_us'")
        return rows(connection, tables(connection))


def today(names: str) -> str:
    """Names of an older schema as they are now."""
    return ", ".join(RENAMED.get(name, name) for name in names.split(", "))


def tables(connection: sqlite3.Connection) -> dict[str, str]:
    """The tables of an older schema with their columns, which later ones have too, if not as tables."""
    found = connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    return {
        name: ", ".join(
            column for _, column, *_ in connection.execute(f"PRAGMA main.table_info({name})") if column not in LEFT_OUT
        )
        for (name,) in found.fetchall()
    }


def rows(connection: sqlite3.Connection, wanted: dict[str, str]) -> dict[str, list[tuple[object, ...]]]:
    is_old = connection.execute("PRAGMA user_version").fetchone()[0] < NEWEST
    return {
        table: sorted(
            connection.execute(
                f"SELECT {columns} FROM main.{table}" if is_old else f"SELECT {today(columns)} FROM {today(table)}"
            ).fetchall(),
            key=repr,
        )
        for table, columns in wanted.items()
    }


def held(path: Path, wanted: Path | None = None) -> tuple[int, dict[str, list[tuple[object, ...]]]]:
    """Schema and content, of the tables of the older ledger `wanted`."""
    with closing(sqlite3.connect(wanted or path)) as older, closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0], rows(connection, tables(older))
