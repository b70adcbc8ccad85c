"""Copies ledger files; the backup before an upgrade is such a copy, for rollbacks."""

import logging
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from gputally.errors import LedgerError

PAGES: Final = 25_000
"""Pages copied between two progress reports: about 100 MB."""
Copied = Callable[[int, int, int], None]
"""Receives SQLite's status, the remaining pages and their total."""
MARGIN_BYTES = 16 << 20
"""Space that an upgrade may need beyond 1.25 times the backup, to move the working state."""
_MIB = 1 << 20
logger = logging.getLogger(__name__)


def copy_into(target: Path, source: sqlite3.Connection, copied: Copied) -> None:
    """Copy all of the ledger `source` into the empty file `target`, and write it to disk.

    Uses SQLite's online backup in slices. It starts again whenever another process has written in between, so with a
    busy writer it would never end. `source` must therefore be the only writer, or be in a read transaction: then all
    slices come from one snapshot. `VACUUM INTO` has one too, but rebuilds every table, reports no progress, and cannot
    copy a damaged file as evidence.

    Raises: OSError, sqlite3's errors.
    """
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        copy.execute("PRAGMA synchronous = OFF")  # it is written to disk once, below
        copy.execute("PRAGMA journal_mode = OFF")
        source.backup(copy, pages=PAGES, progress=copied)
        copy.execute("PRAGMA journal_mode = DELETE")  # keeps the copy in one file, also while it is read
    sync(target)


def sync(path: Path) -> None:
    """Write the file or folder at `path` to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def back_up(connection: sqlite3.Connection, path: Path, *, upgrade: int) -> None:
    """Copy the ledger at `path` into its folder before its upgrade to schema `upgrade`; the copy is atomic.

    Raises: LedgerError if the space is not sufficient; then nothing is changed.
    """
    target = Path(f"{path}.before-{upgrade:04}")
    partial = Path(f"{target}.partial")
    for leftover in (partial, target):  # of a failed attempt, which left the ledger unchanged
        if leftover.is_file():
            leftover.unlink()
    _expect_room(connection, path)
    try:
        _copy_before_upgrade(connection, path, partial)
        partial.replace(target)
        sync(target.parent)
    except (OSError, sqlite3.Error) as error:
        partial.unlink(missing_ok=True)
        raise LedgerError(
            f"{path}: cannot be upgraded because the backup {target} cannot be written: {error}; it was left untouched"
        ) from None
    logger.warning(
        "the ledger %s is upgraded to schema %d; %s is its backup: to roll back, stop the aggregator, restore it with "
        "'gputally restore', and run the previous version",
        *(path, upgrade, target),
    )


def usable_backups(path: Path, *, newest: int) -> list[Path]:
    """The backups of the ledger at `path` with a schema up to `newest`, the latest first."""
    name = re.compile(re.escape(path.name) + r"\.before-\d{4}")
    known = [(schema_of(each), each) for each in path.parent.iterdir() if name.fullmatch(each.name) and each.is_file()]
    return [each for schema, each in sorted(known, reverse=True) if schema <= newest]


def _expect_room(connection: sqlite3.Connection, path: Path) -> None:
    pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    needed, free = pages * size + pages * size // 4 + MARGIN_BYTES, shutil.disk_usage(path.parent).free
    if free < needed:
        raise LedgerError(
            f"{path}: an upgrade first copies it, and needs {needed // _MIB} MiB beside it, but {free // _MIB} MiB "
            "are free; free some space, or move the ledger to a larger disk; it was left untouched"
        )


def _copy_before_upgrade(connection: sqlite3.Connection, path: Path, partial: Path) -> None:
    partial.unlink(missing_ok=True)
    partial.touch(0o600)
    shutil.copymode(path, partial)
    copy_into(partial, connection, _progress(path))


def _progress(path: Path) -> Callable[[int, int, int], None]:
    """Log the progress of the copy in steps of 10 %: many GB take minutes."""
    logged = -1

    def copied(_: int, remaining: int, total: int) -> None:
        nonlocal logged
        tenth = 10 * (total - remaining) // total if total else 10
        if tenth > logged and total > PAGES:
            logger.info("%s: %d %% copied before the upgrade", path, 10 * tenth)
        logged = max(logged, tenth)

    return copied


def schema_of(path: Path) -> int:
    """The user_version in SQLite's file header."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(64)[60:], "big")
