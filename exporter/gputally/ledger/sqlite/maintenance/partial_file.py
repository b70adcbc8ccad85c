"""Files that get their name only when they are complete."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gputally.errors import LedgerError

_MIB = 1 << 20


@contextmanager
def partial_of(target: Path, mode: int) -> Iterator[Path]:
    """An empty file beside `target`, to be renamed or removed by the caller; removed at the end if it still exists.

    A killed process leaves it; the next one uses it again. `mode` are its permissions.

    Raises: LedgerError if another process writes it now, or if the folder is not writable.
    """
    partial = Path(f"{target}.partial")
    file = _locked(partial, target)
    try:
        os.ftruncate(file, 0)
        os.fchmod(file, mode)
        _remove_journals(partial)
        yield partial
    finally:
        if is_same_file(file, partial):
            partial.unlink()
        _remove_journals(partial)
        os.close(file)


def expect_room(folder: Path, needed: int, purpose: str) -> None:
    """Raises: LedgerError if `folder` does not have `needed` bytes and a reserve for what is written meanwhile."""
    needed += needed // 20 + _MIB
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise LedgerError(
            f"{folder}: {purpose} needs {needed / _MIB:,.0f} MiB here, but {free / _MIB:,.0f} MiB are free; "
            "free some space, or use a larger volume"
        )


def is_same_file(file: int, path: Path) -> bool:
    """Whether the open `file` is the one at `path`."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _locked(partial: Path, target: Path) -> int:
    file = -1
    try:
        file = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not is_same_file(file, partial):
            raise BlockingIOError  # the process that had it has just renamed or removed it
    except OSError as error:
        if file >= 0:
            os.close(file)
        if isinstance(error, BlockingIOError):
            raise LedgerError(f"{target}: another process writes it now; wait until that has ended") from None
        raise LedgerError(f"{target}: cannot be written: {error.strerror}; choose a writable folder") from None
    return file


def _remove_journals(partial: Path) -> None:
    for suffix in ("-journal", "-shm", "-wal"):
        Path(f"{partial}{suffix}").unlink(missing_ok=True)
