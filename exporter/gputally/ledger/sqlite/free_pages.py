"""Gives free pages of the file back to the file system, in small steps."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from gputally.ledger.sqlite.schema import INCREMENTAL

Transaction = Callable[[], AbstractContextManager[None]]
_PAGES: Final = 100
"""Pages moved in one step, in some ms."""
_KEPT: Final = 256
"""Free pages that stay for the next writes: 1 MiB."""


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
