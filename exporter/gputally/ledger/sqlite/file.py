"""Opens the file of a ledger: to write it, one process at a time, after checks and an upgrade, or only to read it."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from gputally.errors import LedgerError
from gputally.ledger.sqlite import integrity, schema
from gputally.ledger.sqlite.copies import back_up, usable_backups
from gputally.ledger.sqlite.integrity import converted_errors, expect_not_lost, expect_unmarked, remedy, starting_again

_MAGIC = b"SQLite format 3\x00"
_HEADER = 100
_CACHE_KIB = 512
"""Half a MiB instead of two: whole pages are cached by the operating system anyway."""
_ACCOUNTING_START = "SELECT value FROM meta WHERE key = 'accounting_start_us'"
BUSY_S = 5
"""How long to wait for another process that holds SQLite's own locks."""
_WAL_FORMAT = 2
_ATTEMPTS: Final = 10
_PAUSE_S: Final = 0.02
"""`is_locked` of another process holds a shared lock for some µs, which must not stop a process that starts."""


def connect(path: Path) -> sqlite3.Connection:
    """Open the ledger at `path` with the current schema; creates it if needed.

    Raises: LedgerError for a file that is not a ledger, is corrupt, was lost, cannot be written, or was written by a
    newer version; such a file is not changed.
    """
    if path.is_dir():
        raise LedgerError(f"{path}: is a directory; specify a file in it")
    expect_not_lost(path)
    if path.exists() and path.stat().st_size:
        _examine(path)
    try:
        return _opened(path)
    except sqlite3.Error as error:
        raise LedgerError(
            f"{path}: cannot be opened: {error}; check its permissions, the free space and what else has it open"
        ) from None


def connect_reading(path: Path) -> sqlite3.Connection:
    """Open the ledger at `path` for reading during writes; any thread may use the connection, one at a time.

    Raises: LedgerError for a file that is not a ledger with the current schema.
    """
    expect_not_lost(path)
    if not path.is_file():
        raise LedgerError(f"{path}: no such file; use the file of --ledger of the aggregator")
    expect_ours(path)
    connection = sqlite3.connect(uri(path, "mode=ro"), uri=True, timeout=BUSY_S, check_same_thread=False)
    try:
        with converted_errors(path):
            schema.expect_current(path, schema.version_of(connection))
    except BaseException:
        connection.close()
        raise
    return connection


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        if not schema.is_new(connection):
            connection.executescript(
                "BEGIN; PRAGMA user_version = 0; ROLLBACK;"
            )  # fails for a read-only file, which SQLite opens silently
        _upgrade(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute("PRAGMA synchronous = FULL")  # NORMAL survives a killed process, but not a power failure
    except BaseException:
        connection.close()
        raise
    return connection


def _upgrade(connection: sqlite3.Connection, path: Path) -> None:
    version, newest = schema.version_of(connection), schema.newest_schema()
    if not version:
        schema.create(connection)
    elif version < newest:
        back_up(connection, path, upgrade=newest)
        schema.migrate(connection, schema.migrations())


def _examine(path: Path) -> None:
    """Reject a file that must not be written, by its header and its newest rows."""
    expect_ours(path)
    newest = schema.newest_schema()
    try:
        with closing(_reader(path)) as connection:
            version = schema.version_of(connection)
            if version == newest:
                integrity.read_newest(connection)
            has_accounting = bool(version) and connection.execute(_ACCOUNTING_START).fetchone() is not None
    except sqlite3.Error as error:
        raise LedgerError(f"{path}: is corrupt ({error}); it was left untouched. {remedy(path)}") from None
    if version > newest:
        raise LedgerError(
            f"{path}: has schema {version}, this gputally reads up to {newest}; it was left untouched, run the newer "
            f"gputally again{_rollback_hint(path, newest)}"
        )
    if not has_accounting:
        expect_unmarked(path)


def _rollback_hint(path: Path, newest: int) -> str:
    backups = usable_backups(path, newest=newest)
    if not backups:
        return f" (there is no backup {path.name}.before-... beside it that this version can read)"
    return (
        f", or run 'gputally restore --ledger {path} {backups[0]}', which lacks everything accounted since the upgrade"
    )


def expect_ours(path: Path) -> None:
    """Check the header before SQLite opens the file: it would replay the journal of another program's database.

    Raises: LedgerError.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}; it must be readable and writable") from None
    if not header.startswith(_MAGIC):
        raise LedgerError(f"{path}: is not an SQLite file; it was left untouched, choose another path")
    application = int.from_bytes(header[68:72], "big")
    if last_reader := schema.LAST_READERS.get(application):
        raise LedgerError(
            f"{path}: was written by a development version before 0.1.0 and was left untouched; the last commit that "
            f"reads it is {last_reader}. To start a new accounting, {starting_again(path)}"
        )
    if application != schema.APPLICATION_ID:
        raise LedgerError(f"{path}: is a database of another program; it was left untouched, choose another path")


def _reader(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing, except to roll back an incomplete migration of a killed process.

    Without a WAL, the file is read as one that never changes: otherwise SQLite would create a WAL beside it.
    """
    if Path(f"{path}-journal").exists():
        mode = "mode=rw"
    else:
        mode = "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1"
    return sqlite3.connect(uri(path, mode), uri=True, timeout=BUSY_S)


def uri(path: Path, options: str) -> str:
    """The URI by which SQLite opens the file at `path`."""
    return f"{path.absolute().as_uri()}?{options}"


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


def is_locked(path: Path) -> bool | None:
    """Whether a process writes the ledger at `path` now; None if this user may not know. Creates no file."""
    try:
        file = os.open(f"{path}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(file)
    return False


class Lock:
    """An exclusive lock for the ledger at `path`; the kernel releases it whenever the process ends.

    The lock is on a separate file: closing any descriptor of the ledger itself would drop SQLite's locks on it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def acquire(self) -> None:
        """Acquire the lock. Raises: LedgerError if another process holds it or the folder is not writable."""
        try:
            self._file = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._lock()
        except BlockingIOError:
            self.release()
            raise LedgerError(
                f"{self._path}: another process writes this ledger; stop it, or use another ledger"
            ) from None
        except OSError as error:
            self.release()
            raise LedgerError(
                f"{self._path}: cannot be locked: {error.strerror}; choose a directory this user can write to"
            ) from None

    def _lock(self) -> None:
        for _ in range(_ATTEMPTS - 1):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE_S)
            else:
                return
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Release the lock. The file stays, since without it two processes could hold the lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
