"""The schema of ledger files: its migrations, what a file lacks, and since when it has records of later schemas."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Final

from gputally.errors import LedgerError
from gputally.ledger.records import IMPORTED, Records
from gputally.ledger.sqlite.rows import Row

INCREMENTAL: Final = 2
SHRINKABLE: Final = f"PRAGMA auto_vacuum = {INCREMENTAL}"
"""Lets a new file shrink later, as the first statement of the transaction that creates it. On its own it would write a
header, which does not identify the file as a ledger yet, if the process is killed then."""


APPLICATION_ID = 0x67707574  # "gput": identifies our files among SQLite databases
_KEYS: Final = {Records.DISRUPTIONS: "disruptions_from_us", Records.WAITS: "waits_from_us"}
"""In the table `meta`."""
_FIRST: Final = {
    Records.DISRUPTIONS: "(SELECT min(decided_us) FROM disruptions)",
    Records.WAITS: "(SELECT min(from_us) FROM waits)",
}
_OFF: Final = ""
"""The value of a kind that is not recorded at present."""
_KEEP: Final = {
    records: (
        f"INSERT INTO meta SELECT '{key}', ifnull(min(:start, {_FIRST[records]}), :start) "  # noqa: S608 (literals)
        f"WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = '{key}' AND value <> '{_OFF}') "
        "ON CONFLICT (key) DO UPDATE SET value = :start"
    )
    for records, key in _KEYS.items()
}
"""`start`, or the time of the first record of an older version, which kept no start.

Only the first write looks for that record, in all of them.
"""
_NOT_RECORDED: Final = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
MOVE_WAITS: Final = f"""
INSERT INTO meta VALUES ('{_KEYS[Records.WAITS]}', CAST(:before AS TEXT))
ON CONFLICT (key) DO UPDATE SET value = CAST(max(CAST(value AS INTEGER), :before) AS TEXT) WHERE value <> '{_OFF}'
"""  # noqa: S608 (literals only)
"""In the transaction that deletes waits which ended before :before (µs)."""


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
    newest = migrations()[-1][0]
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


def keep_starts(connection: sqlite3.Connection, *, start_us: int, has_waits: bool) -> None:
    """Keep that each kind of records begins at `start_us`, unless it began before; or that waits are not recorded.

    This comes before the first ones are written.
    """
    for records, statement in _KEEP.items():
        if records is Records.WAITS and not has_waits:
            connection.execute(_NOT_RECORDED, (_KEYS[records], _OFF))
        else:
            connection.execute(statement, {"start": start_us})


def later_records(
    meta: Mapping[str, str], rows: Callable[[str], list[Row]], *, accounted_us: int
) -> dict[Records, int | None]:
    """The kinds that begin after the accounting start, with their first time (µs); None for those that are missing."""
    if meta.get("cluster") == IMPORTED:
        return dict.fromkeys(_KEYS)
    start_us, found = int(meta["accounting_start_us"]), dict[Records, int | None]()
    for records, key in _KEYS.items():
        value = meta.get(key)
        if value == _OFF:
            found[records] = None
        elif (from_us := _first(records, rows, accounted_us) if value is None else int(value)) > start_us:
            found[records] = from_us
    if "detail_start_us" in meta:  # the retention deletes single pods and waits
        detail_us = int(meta["detail_start_us"])
        waits_us = found.get(Records.WAITS, start_us)
        found |= {Records.PODS: detail_us, Records.WAITS: None if waits_us is None else max(waits_us, detail_us)}
    return found


def _first(records: Records, rows: Callable[[str], list[Row]], accounted_us: int) -> int:
    """The first record of a ledger that only older versions wrote: it shows since when they kept such records."""
    [(first_us,)] = rows(f"SELECT {_FIRST[records]}")
    return accounted_us if first_us is None else int(first_us)
