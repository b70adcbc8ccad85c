"""Connections that read the pages of a large ledger at the same time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from gputally.ledger.sqlite.file import reading
from gputally.ledger.sqlite.integrity import converted_errors
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.sqlite.segment_pages import last_pod

LARGE = 100_000
"""From so many pods on, several connections read."""
READERS: Final = 2
"""More threads gain little: Python adds up what they read."""


@contextmanager
def page_readers(path: Path, rows: Rows, *, is_alone: bool) -> Iterator[Sequence[Rows]]:
    """Functions that run a statement: `rows` if it `is_alone` or the ledger is small, else new connections.

    Raises: LedgerError.
    """
    with ExitStack() as connections:
        if is_alone or last_pod(rows) < LARGE:
            yield [rows]
        else:
            yield [connections.enter_context(_reader(path)) for _ in range(READERS)]


@contextmanager
def _reader(path: Path) -> Iterator[Rows]:
    with reading(path) as connection:

        def rows(sql: str, values: Mapping[str, Any]) -> Sequence[Row]:
            with converted_errors(path):
                return connection.execute(sql, values).fetchall()

        yield rows
