"""Backups of a ledger that another process may write; a file gets its name only when it is complete."""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from gputally.errors import LedgerDamaged, LedgerError
from gputally.ledger.sqlite.copies import copy_into, sync
from gputally.ledger.sqlite.file import is_locked, reading
from gputally.ledger.sqlite.info import accounted_us
from gputally.ledger.sqlite.integrity import damage_of, examine
from gputally.ledger.stored import Backup, Report

_MIB = 1 << 20
CHUNK: Final = 1 << 20


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


def back_up_to_file(path: Path, target: Path, *, force: bool, check: bool, report: Report) -> Backup:
    """Copy the ledger at `path` to `target`, which appears only when the copy is complete and checked.

    `force` overwrites `target`. Without `check`, a damaged ledger is copied too.

    Raises: LedgerError if the ledger is damaged, or the copy cannot be written.
    """
    _expect_free(path, target, force=force)
    with partial_of(target, path.stat().st_mode & 0o777 if path.is_file() else 0o600) as partial:
        backup = _back_up(path, partial, check=check, report=report)
        for suffix in ("-wal", "-shm"):  # of the file that is overwritten: SQLite would apply them to the new one
            Path(f"{target}{suffix}").unlink(missing_ok=True)
        partial.replace(target)
        sync(target.parent)
    return backup


def back_up_to_stream(path: Path, stream: BinaryIO, *, check: bool, report: Report) -> Backup:
    """Write a copy of the ledger at `path` to `stream`, when it is complete and checked.

    Until then it is in a file beside the ledger; that has no name any more while it is sent.

    Raises: LedgerError if the ledger is damaged, or the folder cannot hold a copy.
    """
    with partial_of(Path(f"{path}.backup"), 0o600) as partial:
        backup = _back_up(path, partial, check=check, report=report)
        with partial.open("rb") as file:
            partial.unlink()
            report("sending")
            _send(file, stream)
    return backup


def _send(file: BinaryIO, stream: BinaryIO) -> None:
    try:
        shutil.copyfileobj(file, stream, CHUNK)
        stream.flush()
    except BrokenPipeError:  # the reader has ended
        raise
    except OSError as error:
        raise LedgerError(
            f"standard output: the backup cannot be written: {error.strerror}; it is incomplete"
        ) from None


def snapshot(path: Path, partial: Path, *, purpose: str, report: Report) -> int | None:
    """Copy the ledger at `path` into `partial` as of now, and return the time (µs) up to which it is complete.

    Raises: LedgerError if it cannot be read or copied.
    """
    with reading(path) as source, damage_of(path):
        source.execute("BEGIN")  # see `copy_into`
        complete_us = accounted_us(source)
        pages, size = (source.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        expect_room(partial.parent, pages * size, purpose)
        try:
            copy_into(partial, source, lambda _, left, total: report(f"copying, {100 * (total - left) // total} %"))
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(f"{path}: cannot be copied to {partial.parent}: {error}") from None
    return complete_us


def _back_up(path: Path, partial: Path, *, check: bool, report: Report) -> Backup:
    complete_us = snapshot(path, partial, purpose="a backup", report=report)
    if check:
        try:
            with reading(partial) as copy:
                examine(copy, path, report)
        except LedgerDamaged as error:
            raise LedgerDamaged(f"{error}; there is no backup: keep the previous ones, --no-check copies it") from None
    return Backup(partial.stat().st_size, complete_us)


def _expect_free(path: Path, target: Path, *, force: bool) -> None:
    """Raises: LedgerError if `target` must not be written."""
    if target.is_dir():
        raise LedgerError(f"{target}: is a directory; specify a file in it")
    if not target.exists():
        return
    if path.exists() and target.samefile(path):
        raise LedgerError(f"{target}: is the ledger itself; choose another file for its backup")
    if is_locked(target):
        raise LedgerError(f"{target}: is a ledger that another process writes; choose another file")
    if not force:
        raise LedgerError(f"{target}: exists already; choose another file, or overwrite it with --force")
