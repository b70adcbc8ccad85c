"""Opens ledgers for reading without a lock, and without leaving files behind."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from gputally.errors import LedgerError
from gputally.ledger.sqlite.marker import expect_not_lost
from gputally.ledger.sqlite.schema import BUSY_S, expect_ours, uri
from gputally.ledger.sqlite.sqlite_errors import converted_errors

_WAL_FORMAT = 2


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that only reads the ledger at `path`, of any schema; other processes may write it meanwhile.

    Any thread may use it, one at a time.

    SQLite creates a WAL beside a file in WAL mode even to read it. If there is none, nothing uses the ledger, and the
    file is read as one that never changes. Should that turn out to be wrong, the result is void. The one file that may
    be created is the index (-shm) of a WAL that was copied without it.

    Raises: LedgerError if the file is not a ledger, cannot be read, or was changed while it was read as above.
    """
    expect_not_lost(path)
    if not path.is_file():
        raise LedgerError(f"{path}: no such file; specify the ledger with --ledger or GPUTALLY_LEDGER")
    expect_ours(path)
    is_fixed, before = _is_unused(path), _version(path)
    try:
        with converted_errors(path), closing(_connection(path, "immutable=1" if is_fixed else "mode=ro")) as connection:
            yield connection
    finally:
        if is_fixed and _version(path) != before:
            raise LedgerError(f"{path}: was changed while it was read, so the result is void; run the command again")


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    address = uri(path, mode)
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _is_unused(path: Path) -> bool:
    """Whether the file is in WAL mode, but has no WAL: it was closed, or is a copy."""
    wal, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    has_wal = wal.exists() and (index.exists() or wal.stat().st_size > 0)
    with path.open("rb") as file:
        written_as = file.read(20)[18:]
    return _WAL_FORMAT in written_as and not has_wal and not Path(f"{path}-journal").exists()


def _version(path: Path) -> tuple[int, int]:
    """Changes with every write to the file."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
