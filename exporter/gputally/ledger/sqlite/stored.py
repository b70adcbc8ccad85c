"""A ledger file as operators see it, also by their own queries, which cannot change it.

A query has the file opened to read, an authorizer against what writes or attaches other files, and a time limit.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO, Final

from gputally.errors import LedgerError
from gputally.ledger.sqlite.backup import back_up_to_file, back_up_to_stream
from gputally.ledger.sqlite.file import reading
from gputally.ledger.sqlite.info import facts_of
from gputally.ledger.sqlite.integrity import examine
from gputally.ledger.sqlite.restore import restore
from gputally.ledger.stored import Backup, LedgerFacts, Queried, Report, Restored

_ALLOWED: Final = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
_PRAGMAS: Final = frozenset(
    (
        *("foreign_key_list", "index_info", "index_list", "index_xinfo", "table_info", "table_list", "table_xinfo"),
        *("freelist_count", "integrity_check", "page_count", "page_size", "quick_check"),
    )
)
_EVERY: Final = 10_000
"""Instructions of SQLite between two looks at the clock: about a ms."""


@contextmanager
def queried(path: Path, sql: str, *, timeout_s: float) -> Iterator[tuple[list[str], Iterator[tuple[object, ...]]]]:
    """The names of the columns and the rows of one statement, which are read as they are consumed.

    Raises: LedgerError for a wrong statement, one that would change anything, and after `timeout_s`.
    """
    with reading(path) as connection:
        connection.execute("SELECT 1 FROM sqlite_master")  # SQLite reports any error of a first statement as SCHEMA
        connection.set_authorizer(_authorized)
        connection.set_progress_handler(_after(timeout_s), _EVERY)
        with _explained(connection, timeout_s):
            cursor = connection.execute(sql)
            if cursor.description is None:
                raise LedgerError("SQL: returns no rows; use a SELECT")
            yield [name for name, *_ in cursor.description], cursor


def _after(timeout_s: float) -> Callable[[], bool]:
    deadline = time.monotonic() + timeout_s
    return lambda: time.monotonic() > deadline


def _authorized(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Allow what reads. The file is opened read-only, but SQLite could still attach and create others."""
    is_allowed = (
        action in _ALLOWED
        or (action == sqlite3.SQLITE_FUNCTION and second != "load_extension")
        or (action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS)
    )
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


@contextmanager
def _explained(connection: sqlite3.Connection, timeout_s: float) -> Iterator[None]:
    """Convert errors of the statement; those of the file propagate."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.Warning) as error:  # a Warning up to Python 3.11
        raise LedgerError(f"SQL: {error}; run one statement at a time, with its values in it") from None
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_INTERRUPT:
            raise LedgerError(
                f"SQL: stopped after {timeout_s:g} s; read fewer rows, by uid or time, or allow more with --timeout"
            ) from None
        if code in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY) or str(error).startswith("not authorized"):
            raise LedgerError(f"SQL: {error}; only statements that read the ledger are allowed") from None
        if code != sqlite3.SQLITE_ERROR:
            raise
        raise LedgerError(f"SQL: {error}{_remedy(connection, str(error))}") from None


def _remedy(connection: sqlite3.Connection, message: str) -> str:
    problem, _, name = message.partition(": ")
    if problem == "no such table":
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        names = sorted(table for (table,) in tables if not table.startswith("sqlite_"))
        close = get_close_matches(name, names, n=1)
        return f"; did you mean {close[0]}?" if close else f"; use one of {', '.join(names)}"
    if problem == "no such column":
        return "; list the columns of a table with: PRAGMA table_info(allocation_segments)"
    return ""


class SqliteStoredLedger:
    """See `StoredLedger`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)

    @property
    def size_bytes(self) -> int:
        """See `StoredLedger.size_bytes`: the file without its WAL."""
        return self._path.stat().st_size

    def facts(self) -> LedgerFacts:
        """See `StoredLedger.facts`."""
        return facts_of(self._path)

    def check(self, report: Report) -> None:
        """See `StoredLedger.check`."""
        with reading(self._path) as connection:
            examine(connection, self._path, report)

    def back_up_to_file(self, target: Path, *, force: bool, check: bool, report: Report) -> Backup:
        """See `StoredLedger.back_up_to_file`."""
        return back_up_to_file(self._path, target, force=force, check=check, report=report)

    def back_up_to_stream(self, stream: BinaryIO, *, check: bool, report: Report) -> Backup:
        """See `StoredLedger.back_up_to_stream`."""
        return back_up_to_stream(self._path, stream, check=check, report=report)

    def restore(self, source: Path | BinaryIO, *, force: bool, report: Report) -> Restored:
        """See `StoredLedger.restore`."""
        return restore(source, self._path, force=force, report=report)

    def query(self, sql: str, *, timeout_s: float) -> AbstractContextManager[Queried]:
        """See `StoredLedger.query`."""
        return queried(self._path, sql, timeout_s=timeout_s)
