"""Integrity checks: of the newest rows before a start, and of the whole file in small steps in the background."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from gputally.errors import LedgerDamaged, LedgerUnwritable
from gputally.ledger.sqlite.closed_rows import check_chain

_SLICE: Final = 5_000
"""Rows checked by one statement, in a few ms: longer reads prevent SQLite from reusing the WAL."""
_NEWEST: Final = 1_000
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR)
_INCOMPLETE: Final = """
SELECT p.uid FROM pods p
LEFT JOIN pod_revisions r ON r.pod = p.id AND r.number = (SELECT max(number) FROM pod_revisions WHERE pod = p.id)
WHERE p.id > ? AND p.id <= ? AND r.segments IS NOT (
    SELECT count(DISTINCT s.ordinal) FROM pod_segments s WHERE s.pod = p.id AND s.ordinal < r.segments
)
LIMIT 1
"""
"""A pod whose last revision lacks segments."""
_OPEN: Final = """
SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'balance_b') - ifnull(sum(s.quantity), 0)
FROM working w
CROSS JOIN pods p ON p.uid = w.uid
CROSS JOIN pod_revisions r ON r.pod = p.id AND r.number = (SELECT max(number) FROM pod_revisions WHERE pod = p.id)
CROSS JOIN pod_segments s
  ON s.pod = p.id AND s.ordinal < r.segments AND s.end_us IS NULL
 AND s.number = (SELECT max(number) FROM pod_segments WHERE pod = s.pod AND ordinal = s.ordinal)
WHERE w.kind = 'pod'
"""
"""The balance minus the current allocations of pods."""


class _Walk(NamedTuple):
    """A table or index with its sort columns; `sound` is a condition that each row must meet."""

    source: str
    key: tuple[str, ...]
    sound: str


def read_newest(connection: sqlite3.Connection) -> None:
    """Read the newest rows. Raises: sqlite3's errors if that fails."""
    last = connection.execute("SELECT ifnull(max(id), 0) FROM pods").fetchone()[0]
    _incomplete(connection, last - _NEWEST, last)


def slices(path: Path, missing: Callable[[sqlite3.Connection], str | None]) -> Iterator[None]:
    """Check the whole file, one slice in each step, through a read-only connection; `missing` checks its structure.

    Raises: LedgerDamaged with the first damage found; LedgerUnwritable if the file cannot be read now.
    """
    with damage_of(path):
        source = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(source, uri=True, check_same_thread=False)) as file:
            yield from _expect(missing(file))
            yield from steps(file)


def steps(file: sqlite3.Connection) -> Iterator[None]:
    """The same with an open connection to a ledger of the current schema. Raises: LedgerDamaged, sqlite3's errors."""
    last = file.execute("SELECT ifnull(max(id), 0) FROM pods").fetchone()[0]
    yield from check_chain(file)
    yield from _expect(_unbalanced(file) or _incomplete(file, last - _NEWEST, last))
    for first in range(0, last, _NEWEST):
        yield from _expect(_incomplete(file, first, first + _NEWEST))
    for walk in _walks(file):
        yield from _check_rows(file, walk)


@contextmanager
def damage_of(path: Path) -> Iterator[None]:
    """Convert SQLite's errors. Raises: LedgerDamaged if the file is damaged, LedgerUnwritable if it cannot be read."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            raise LedgerDamaged(f"{path}: is damaged: {error}") from None
        raise LedgerUnwritable(f"{path}: cannot be read now: {error}") from None


def _unbalanced(connection: sqlite3.Connection) -> str | None:
    [difference] = connection.execute(_OPEN).fetchone()
    return f"the GPUs allocated to pods differ from the balance by {difference} µGPU" if difference else None


def _incomplete(connection: sqlite3.Connection, after: int, upto: int) -> str | None:
    found = connection.execute(_INCOMPLETE, (after, upto)).fetchone()
    return f"the last revision of pod {found[0]} lacks segments" if found else None


def _walks(connection: sqlite3.Connection) -> Iterator[_Walk]:
    """All tables, and all indexes that are not clustered primary keys."""
    for name, sql in connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
        needed = [f"typeof({column}) = '{kind.lower()}'" for _, column, kind, not_null, *_ in columns if not_null]
        primary = sorted((place, column) for _, column, *_, place in columns if place)
        clustered = "WITHOUT ROWID" in sql
        key = tuple(column for _, column in primary) if clustered else ("rowid",)
        yield _Walk(name, key, " AND ".join(needed) or "TRUE")
        for _, index, _, origin, is_partial in connection.execute(f"PRAGMA index_list({name})").fetchall():
            if not is_partial and not (clustered and origin == "pk"):
                indexed = tuple(column for *_, column in connection.execute(f"PRAGMA index_info({index})"))
                yield _Walk(f"{name} INDEXED BY {index}", (*indexed, *key), "TRUE")


def _check_rows(connection: sqlite3.Connection, walk: _Walk) -> Iterator[None]:
    """Check all rows in order."""
    key, marks = ", ".join(walk.key), ", ".join("?" * len(walk.key))
    after: tuple[object, ...] | None = ()
    while after is not None:
        beyond = f"({key}) > ({marks})" if after else "TRUE"
        until = connection.execute(
            f"SELECT {key} FROM {walk.source} WHERE {beyond} ORDER BY {key} LIMIT 1 OFFSET {_SLICE}",  # noqa: S608 (names in our schema)
            after,
        ).fetchone()
        within = f"{beyond} AND ({key}) <= ({marks})" if until else beyond
        unsound = connection.execute(
            f"SELECT {key} FROM {walk.source} WHERE {within} AND NOT ({walk.sound}) LIMIT 1",  # noqa: S608 (see above)
            (*after, *(until or ())),
        ).fetchone()
        yield from _expect(f"the row {unsound} of {walk.source} is not valid" if unsound else None)
        after = until


def _expect(damage: str | None) -> Iterator[None]:
    """End a slice. Raises: LedgerDamaged if it is damaged."""
    if damage:
        raise LedgerDamaged(damage)
    yield
