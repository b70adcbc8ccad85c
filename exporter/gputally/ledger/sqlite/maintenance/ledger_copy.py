"""Copies a ledger while another process writes it, and verifies copies."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from gputally.errors import LedgerDamaged, LedgerError
from gputally.ledger.sqlite.backup import sync
from gputally.ledger.sqlite.schema import connect_reading
from gputally.ledger.sqlite.sqlite_errors import converted_errors

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in total."""
_PAGES: Final = 2_500
"""Pages copied between two reports of progress: about 10 MB."""
_MARGIN_BYTES: Final = 16 << 20
_MIB: Final = 1 << 20


class Copied(NamedTuple):
    """A copy in a temporary file, and the time (µs) up to which it is complete; None if there is none, or unknown."""

    path: Path
    accounted_us: int | None


@contextmanager
def copied(path: Path, folder: Path, progress: Progress, *, verified: bool = True) -> Iterator[Copied]:
    """A consistent copy of the ledger in a temporary file in `folder`; deleted at the end unless it was renamed.

    Raises: LedgerError, also if the space is not sufficient, or if the copy is to be `verified` and is damaged.
    """
    _expect_room(path, folder)
    with closing(connect_reading(path)) as connection, _temporary(path, folder) as target:
        with converted_errors(path):
            _copy(connection, target, progress)
        if verified:
            verify(target)
        sync(target)
        yield Copied(target, _accounted_us(target))


def verify(path: Path) -> None:
    """Check the structure of a copy that nobody writes. Raises: LedgerDamaged."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        try:
            [result] = connection.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            result = str(error)
    if result != "ok":
        raise LedgerDamaged(f"{path}: is damaged: {result}")


def _copy(connection: sqlite3.Connection, target: Path, progress: Progress) -> None:
    """One open read transaction keeps the source the same: otherwise each write would restart SQLite's backup.

    Source: sqlite.org/backup.html, and sqlite3_backup_step(), which keeps a read transaction that is open.
    """
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM meta").fetchone()  # begins to read
        try:
            connection.backup(
                copy, pages=_PAGES, progress=lambda _, rest, total: progress(size * (total - rest), size * total)
            )
        finally:
            connection.execute("ROLLBACK")
        copy.execute("PRAGMA journal_mode = DELETE")  # one file


@contextmanager
def _temporary(path: Path, folder: Path) -> Iterator[Path]:
    """A new file with the permissions of `path`. Raises: LedgerError."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".partial", dir=folder)
    except OSError as error:
        raise LedgerError(f"{folder}: cannot be written: {error.strerror}; choose another directory") from None
    os.close(descriptor)
    found = Path(name)
    try:
        shutil.copymode(path, found)
        yield found
    finally:
        found.unlink(missing_ok=True)


def _expect_room(path: Path, folder: Path) -> None:
    try:
        size = sum(each.stat().st_size for each in (path, Path(f"{path}-wal")) if each.exists())
        needed, free = size + _MARGIN_BYTES, shutil.disk_usage(folder).free
    except OSError as error:
        raise LedgerError(f"{error.filename}: {error.strerror}") from None
    if free < needed:
        raise LedgerError(f"{folder}: a copy needs {needed // _MIB} MiB, but only {free // _MIB} MiB are free")


def _accounted_us(path: Path) -> int | None:
    sql = "SELECT max(CAST(value AS INTEGER)) FROM meta WHERE key IN ('accounting_start_us', 'at_us', 'evaluated_us')"
    try:
        with closing(connect_reading(path)) as connection:
            found: int | None = connection.execute(sql).fetchone()[0]
    except sqlite3.DatabaseError:
        return None  # an unverified copy
    return found
