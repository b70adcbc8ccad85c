"""Gives free pages of the file back to the file system, in small steps."""

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from gputally.ledger.sqlite.schema import INCREMENTAL, SHRINKABLE

logger = logging.getLogger(__name__)
Transaction = Callable[[], AbstractContextManager[None]]
_PAGES: Final = 100
"""Pages moved in one step, in some ms."""
_KEPT: Final = 256
"""Free pages that stay for the next writes: 1 MiB."""
_MIB: Final = 1 << 20
_FOLDER: Final = "SQLITE_TMPDIR"


def make_shrinkable(connection: sqlite3.Connection, path: Path) -> None:
    """Rebuild a file of an older version once, so that it can shrink. If that is not possible, it reuses its space."""
    if _value(connection, "auto_vacuum") == INCREMENTAL:
        return
    size = _value(connection, "page_count") * _value(connection, "page_size")
    needed, free = 2 * size, shutil.disk_usage(path.parent).free
    if free < needed:
        logger.warning(
            "%s: its size can decrease only after it was rebuilt once, which needs %d MiB, but %d MiB are free; until "
            "then, the space that --ledger.retention frees is reused; free some space and restart",
            *(path, needed // _MIB, free // _MIB),
        )
        return
    logger.info("%s: is rebuilt once, so that --ledger.retention can reduce its size (%d MiB)", path, size // _MIB)
    try:
        _rebuild(connection, path.parent)
    except sqlite3.OperationalError as error:
        logger.warning("%s: cannot be rebuilt: %s; until that works at a start, its freed space is reused", path, error)


def _rebuild(connection: sqlite3.Connection, folder: Path) -> None:
    """SQLite's temporary copy goes to `folder`, since the usual one may be small or read-only in a container."""
    before = os.environ.get(_FOLDER)
    os.environ[_FOLDER] = str(folder.absolute())
    try:
        connection.execute(SHRINKABLE)
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        del os.environ[_FOLDER]
        if before is not None:
            os.environ[_FOLDER] = before


def release_pages(connection: sqlite3.Connection, transaction: Transaction) -> Iterator[None]:
    """Give free pages back, some in each step. Raises: sqlite3's errors."""
    while _value(connection, "auto_vacuum") == INCREMENTAL and _value(connection, "freelist_count") > _KEPT:
        with transaction():
            for _ in range(_PAGES):  # Python takes only the first of the steps that SQLite needs for more than one
                connection.execute("PRAGMA incremental_vacuum(1)")
        yield


def _value(connection: sqlite3.Connection, name: str) -> int:
    found: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return found
