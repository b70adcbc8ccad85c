"""Notices that a ledger was lost: a missing or empty file, or one without accounting, where there was an accounting.

SQLite treats such a file as a new database and deletes the WAL beside it: the accounting would restart at 0, and its
last traces would be gone. So a marker beside the ledger says that there was one. It is written after the first commit
of the accounting, so a process that is killed before never leaves it.
"""

import logging
import os
from pathlib import Path

from gputally.errors import LedgerError
from gputally.ledger.sqlite.maintenance.copying import sync

logger = logging.getLogger(__name__)

_TEXT = """\
{name} has been the ledger of an accounting. If it is missing or empty, it was lost, and gputally does not start:
restore a backup with 'gputally restore'.
To start a new accounting on purpose, move away {name}, its -wal and this file.
"""


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
        f"move away {path.name}, {path.name}-wal and {marker_of(path).name}"
    )
