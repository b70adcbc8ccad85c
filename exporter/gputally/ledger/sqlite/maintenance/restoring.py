"""Puts a backup in the place of a ledger, which is kept."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from gputally.errors import LedgerError
from gputally.ledger.sqlite import integrity, schema
from gputally.ledger.sqlite.backup import sync
from gputally.ledger.sqlite.lock import Lock
from gputally.ledger.sqlite.maintenance.ledger_copy import verify

_SIDE_FILES: Final = ("-wal", "-shm")


class Restored(NamedTuple):
    """Where the previous ledger is now; None if there was none. `is_older` says whether the backup will be upgraded."""

    previous: Path | None
    is_older: bool


@contextmanager
def staged(ledger: Path) -> Iterator[Path]:
    """A path beside the ledger to write the backup to, while this process owns the ledger.

    Raises: LedgerError if another process owns it.
    """
    lock, stage = Lock(ledger), Path(f"{ledger}.restoring")
    lock.acquire()
    try:
        stage.unlink(missing_ok=True)
        yield stage
    finally:
        stage.unlink(missing_ok=True)
        lock.release()


def put_in_place(stage: Path, ledger: Path, *, at: str, allow_other_cluster: bool) -> Restored:
    """Make the staged backup the ledger. The previous one becomes `LEDGER.before-restore-AT`.

    At every moment, one of the two is the whole ledger, if the file system has hard links. Raises: LedgerError if the
    backup is damaged, is no ledger, was written by a newer gputally or, unless allowed, is of another cluster; then the
    previous ledger is unchanged.
    """
    version = _examined(stage)
    if not allow_other_cluster:
        _expect_same_cluster(stage, ledger)
    sync(stage)
    previous = _set_aside(ledger, Path(f"{ledger}.before-restore-{at}")) if ledger.exists() else None
    stage.replace(ledger)
    sync(ledger.parent)
    return Restored(previous, is_older=version < schema.migrations()[-1][0])


def _examined(stage: Path) -> int:
    """The schema of a sound backup."""
    try:
        version = schema.single_file(stage)
        verify(stage)
        if version == schema.migrations()[-1][0]:
            for _ in integrity.slices(stage):
                pass
    except LedgerError as error:
        reason = str(error).removeprefix(f"{stage}: ")
        raise LedgerError(f"the backup cannot be restored: it {reason}; the ledger is unchanged") from None
    return version


def _expect_same_cluster(stage: Path, ledger: Path) -> None:
    if not ledger.exists() or not ledger.stat().st_size:
        return
    there, here = _cluster(stage), _cluster(ledger)
    if there and here and there != here:
        raise LedgerError(
            f"the backup is of cluster {there}, but {ledger} is of cluster {here}; use --force to restore it; "
            "the ledger is unchanged"
        )


def _cluster(path: Path) -> str | None:
    """None for a ledger that is too damaged to tell: it is what the backup replaces."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'cluster'").fetchone()
    except sqlite3.Error:
        return None
    return row[0] if row else None


def _set_aside(ledger: Path, aside: Path) -> Path:
    """Keep the ledger under another name too, whole in one file if it can be read."""
    _merge_wal(ledger)
    for suffix in _SIDE_FILES:  # only a damaged ledger still has them
        side = Path(f"{ledger}{suffix}")
        if side.exists():
            side.rename(f"{aside}{suffix}")
    try:
        os.link(ledger, aside)
    except FileExistsError:
        raise LedgerError(f"{aside}: exists; try again") from None
    except OSError:  # such as a network file system without hard links
        ledger.rename(aside)
    return aside


def _merge_wal(ledger: Path) -> None:
    """Move what is only in the write-ahead log into the file. SQLite deletes the log with the last connection."""
    try:
        with closing(sqlite3.connect(ledger)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error:
        return  # damaged
