"""Runs SQL queries that cannot change the ledger."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from gputally.errors import LedgerError
from gputally.ledger.sqlite.schema import connect_reading

_STEPS: Final = 10_000
"""Steps of SQLite's virtual machine between two looks at the clock: well below a millisecond."""
_ALLOWED: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_PRAGMAS: Final = frozenset({"table_info", "table_xinfo", "table_list", "index_list", "index_info", "user_version"})


class QueryResult(NamedTuple):
    """Column names, and the rows as SQLite returns them: int, float, str, bytes or None."""

    columns: Sequence[str]
    rows: Iterator[tuple[Any, ...]]


@contextmanager
def read_query(path: Path, sql: str, *, timeout_s: float) -> Iterator[QueryResult]:
    """Run one SELECT, for at most `timeout_s` including the time its rows are read.

    The query reads one state of the ledger, also while an aggregator writes. Until it ends, SQLite cannot reuse the
    write-ahead log (WAL), which grows. Raises: LedgerError with the reason, also while rows are read.
    """
    with closing(connect_reading(path)) as connection:
        connection.execute("PRAGMA query_only = 1")
        connection.set_authorizer(_authorize)
        deadline = time.monotonic() + timeout_s
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        try:
            cursor = connection.execute(sql)
            if cursor.description is None:
                raise LedgerError("the SQL returns no rows; use one SELECT")
            yield QueryResult([column for column, *_ in cursor.description], cursor)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise LedgerError(f"{path}: {_reason(error, timeout_s)}") from None


def _authorize(action: int, name: str | None, *_: str | None) -> int:
    """Deny all but reading: a query could otherwise attach and change other files."""
    reads = action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and name in _PRAGMAS)
    return sqlite3.SQLITE_OK if reads else sqlite3.SQLITE_DENY


def _reason(error: Exception, timeout_s: float) -> str:
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_INTERRUPT:
        return f"the query took longer than {timeout_s:g} s; narrow it, raise --timeout, or query a backup"
    if code == sqlite3.SQLITE_AUTH:
        return "only SELECT is allowed; the ledger is never changed by hand"
    return f"the query failed: {error}; for tables and columns, query name and sql of sqlite_master"
