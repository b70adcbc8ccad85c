"""Backups of a ledger that another process may write."""

import shutil
import sqlite3
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from gputally.errors import LedgerDamaged, LedgerError
from gputally.ledger.sqlite.integrity import damage_of
from gputally.ledger.sqlite.lock import is_locked
from gputally.ledger.sqlite.maintenance.copying import copy_into, sync
from gputally.ledger.sqlite.maintenance.examine import Report, examine
from gputally.ledger.sqlite.maintenance.facts import accounted_us
from gputally.ledger.sqlite.maintenance.partial_file import expect_room, partial_of
from gputally.ledger.sqlite.maintenance.read_only import reading

CHUNK: Final = 1 << 20


class Backup(NamedTuple):
    """A complete backup; `accounted_us` is None for a ledger that was never written."""

    size_bytes: int
    accounted_us: int | None


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
