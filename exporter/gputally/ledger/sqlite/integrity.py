"""Notices that a ledger was lost or damaged: at a start, in the background, or when a person asks for a complete check.

SQLite treats a missing or empty file as a new database and deletes the WAL beside it: the accounting would restart at
0, and its last traces would be gone. So a marker beside the ledger says that there was one. It is written after the
first commit of the accounting, so a process that is killed before never leaves it.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gputally.errors import LedgerDamaged, LedgerError, LedgerUnwritable
from gputally.ledger.sqlite.closed_periods import check_chain
from gputally.ledger.sqlite.copies import sync
from gputally.ledger.sqlite.pod_days import LASTING
from gputally.ledger.sqlite.schema import missing_part, newest_schema, version_of
from gputally.ledger.sqlite.summed_pages import differing_sums
from gputally.model.units import US_PER_DAY

if TYPE_CHECKING:  # of operators alone
    from gputally.ledger.stored import Report

_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR)
_SLICE: Final = 5_000
"""Rows checked by one statement, in a few ms: longer reads prevent SQLite from reusing the WAL."""
_NEWEST: Final = 1_000
_INCOMPLETE: Final = """
SELECT p.uid FROM pods p
LEFT JOIN pod_revisions r ON r.pod = p.id AND r.number = (SELECT max(number) FROM pod_revisions WHERE pod = p.id)
WHERE p.id > ? AND p.id <= ? AND r.segments IS NOT (
    SELECT count(DISTINCT s.ordinal) FROM pod_segments s WHERE s.pod = p.id AND s.ordinal < r.segments
)
LIMIT 1
"""
"""A pod whose last revision lacks segments."""
_NOT_INDEXED: Final = f"""
SELECT p.uid FROM pods p
CROSS JOIN pod_revisions r ON r.pod = p.id AND r.number = (SELECT max(number) FROM pod_revisions WHERE pod = p.id)
CROSS JOIN pod_segments s
  ON s.pod = p.id AND s.ordinal < r.segments
 AND s.number = (SELECT max(number) FROM pod_segments WHERE pod = s.pod AND ordinal = s.ordinal)
WHERE p.id > ? AND p.id <= ?
AND NOT EXISTS (SELECT 1 FROM pod_days WHERE day = {LASTING} AND pod = p.id)
AND (
    s.end_us IS NULL
    OR NOT EXISTS (SELECT 1 FROM pod_days WHERE day = s.start_us / {US_PER_DAY} AND pod = p.id)
    OR NOT EXISTS (SELECT 1 FROM pod_days WHERE day = max(s.start_us, s.end_us - 1) / {US_PER_DAY} AND pod = p.id)
)
LIMIT 1
"""  # noqa: S608 (numbers only)
"""A pod that would not be found by reports of the first or last day of one of its segments, or while it lasts."""
_OPEN: Final = """
SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'balance_allocated_b') - ifnull(sum(s.quantity), 0)
FROM working w
CROSS JOIN pods p ON p.uid = w.uid
CROSS JOIN pod_revisions r ON r.pod = p.id AND r.number = (SELECT max(number) FROM pod_revisions WHERE pod = p.id)
CROSS JOIN pod_segments s
  ON s.pod = p.id AND s.ordinal < r.segments AND s.end_us IS NULL
 AND s.number = (SELECT max(number) FROM pod_segments WHERE pod = s.pod AND ordinal = s.ordinal)
WHERE w.kind = 'pod'
"""
"""The balance minus the current allocations of pods."""
_SAMPLE: Final = "SELECT page FROM summed_pages ORDER BY random() LIMIT 20"
"""A second or two of computing."""
logger = logging.getLogger(__name__)
_TEXT = """\
{name} has been the ledger of an accounting. If it is missing or empty, it was lost, and gputally does not start:
restore a backup with 'gputally restore'.
To start a new accounting on purpose, move away {name}, its -wal and this file.
"""
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_EVERY: Final = 20


@contextmanager
def damage_of(path: Path) -> Iterator[None]:
    """Convert SQLite's errors. Raises: LedgerDamaged if the file is damaged, LedgerUnwritable if it cannot be read."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            raise LedgerDamaged(f"{path}: is damaged: {error}") from None
        raise LedgerUnwritable(f"{path}: cannot be read now: {error}") from None


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
    """Check all of a ledger of the current schema, one slice in each step. Raises: LedgerDamaged, sqlite3's errors."""
    last = file.execute("SELECT ifnull(max(id), 0) FROM pods").fetchone()[0]
    yield from check_chain(file)
    yield from _expect(_unbalanced(file) or _incomplete(file, last - _NEWEST, last))
    for first in range(0, last, _NEWEST):
        yield from _expect(_incomplete(file, first, first + _NEWEST))
    for walk in _walks(file):
        yield from _check_rows(file, walk)
    for (page,) in file.execute(_SAMPLE).fetchall():
        yield from _expect(differing_sums(file, page))


def _unbalanced(connection: sqlite3.Connection) -> str | None:
    [difference] = connection.execute(_OPEN).fetchone()
    return f"the GPUs allocated to pods differ from the balance by {difference} µGPU" if difference else None


def _incomplete(connection: sqlite3.Connection, after: int, upto: int) -> str | None:
    if found := connection.execute(_INCOMPLETE, (after, upto)).fetchone():
        return f"the last revision of pod {found[0]} lacks segments"
    if found := connection.execute(_NOT_INDEXED, (after, upto)).fetchone():
        return f"pod {found[0]} lacks one of its days"
    return None


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


def marker_of(path: Path) -> Path:
    """The marker of the ledger at `path`."""
    return Path(f"{path}.begun")


def expect_not_lost(path: Path) -> None:
    """Raises: LedgerError if the ledger at `path` was lost. Opens no database, so that its WAL is kept."""
    if path.is_dir() or (path.exists() and path.stat().st_size):
        return
    wal, marker = Path(f"{path}-wal"), marker_of(path)
    if wal.exists() and (size := wal.stat().st_size):
        raise _lost(path, f"but {wal.name} has {size} bytes that belong to it")
    if marker.exists():
        raise _lost(path, f"but {marker.name} says that it contained an accounting")


def expect_unmarked(path: Path) -> None:
    """Raises: LedgerError if the ledger at `path`, which has no accounting, had one. Call it before a change."""
    if (marker := marker_of(path)).exists():
        raise LedgerError(
            f"{path}: contains no accounting, but {marker.name} says that it did: it or its WAL was replaced, and "
            f"nothing was changed. {remedy(path)}"
        )


def mark(path: Path) -> bool:
    """Write the marker durably, unless there is one; False if that failed, which is logged.

    A failure must not stop the accounting: the marker only helps where the file is lost later.
    """
    marker = marker_of(path)
    if marker.exists():
        return True
    try:
        file = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, _TEXT.format(name=path.name).encode())
            os.fsync(file)
        finally:
            os.close(file)
        sync(path.parent)
    except OSError as error:
        logger.warning("%s: cannot be written: %s; it is tried again at the next write", marker, error.strerror)
        return False
    return True


def unmark(path: Path) -> None:
    """Remove the marker durably, before a ledger without accounting takes the place of the one at `path`."""
    marker_of(path).unlink(missing_ok=True)
    sync(path.parent)


def _lost(path: Path, evidence: str) -> LedgerError:
    state = "is empty" if path.exists() else "is missing"
    return LedgerError(f"{path}: {state}, {evidence}: the ledger was lost, and nothing was changed. {remedy(path)}")


def remedy(path: Path) -> str:
    """What to do about a lost or corrupt ledger at `path`: with the marker left, no new accounting would start."""
    return (
        "Stop the aggregator and restore a backup with 'gputally restore'; to start a new accounting on purpose, "
        f"{starting_again(path)}"
    )


def starting_again(path: Path) -> str:
    """What to do so that a new accounting starts at `path`."""
    return f"move away {path.name}, {path.name}-wal and {marker_of(path).name}"


@contextmanager
def converted_errors(path: Path) -> Iterator[None]:
    """Convert errors of the disk or the file; all other errors are bugs and propagate."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise LedgerUnwritable(f"{path}: cannot be used now: {error}") from None
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _CORRUPT:
            raise
        raise LedgerError(f"{path}: is corrupt ({error}). {remedy(path)}") from None


def examine(connection: sqlite3.Connection, path: Path, report: "Report") -> None:
    """Check every page, index and row of the ledger, that no table is missing, and that its pods add up.

    SQLite checks all of it in one transaction. The rows of another schema than the current one are not compared.

    Raises: LedgerDamaged with the first damage found; LedgerUnwritable if the file cannot be read now.
    """
    with damage_of(path):
        report("checking all pages")
        [(found,)] = connection.execute("PRAGMA integrity_check(1)")
        if found != "ok":
            raise LedgerDamaged(f"{path}: is damaged: {found}")
        if version_of(connection) <= newest_schema() and (missing := missing_part(connection)):
            raise LedgerDamaged(f"{path}: is damaged: {missing}")
        if version_of(connection) == newest_schema():
            _compare_rows(connection, path, report)


def _compare_rows(connection: sqlite3.Connection, path: Path, report: "Report") -> None:
    try:
        for step, _ in enumerate(steps(connection)):
            if step % _EVERY == 0:
                report(f"checking the rows, step {step}")
    except LedgerDamaged as error:
        raise LedgerDamaged(f"{path}: is damaged: {error}") from None
