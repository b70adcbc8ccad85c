"""Converts errors of SQLite to ledger errors."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gputally.errors import LedgerError, LedgerUnwritable
from gputally.ledger.sqlite.marker import remedy

_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


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
