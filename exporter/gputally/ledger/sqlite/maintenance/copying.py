"""Copies of ledger files."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

PAGES: Final = 25_000
"""Pages copied between two progress reports: about 100 MB."""
Copied = Callable[[int, int, int], None]
"""Receives SQLite's status, the remaining pages and their total."""


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
