"""Reads pages of a large ledger by several connections at once: SQLite works without Python's lock."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from gputally.ledger.sqlite.maintenance.read_only import reading
from gputally.ledger.sqlite.segment_rows import Row
from gputally.ledger.sqlite.sqlite_errors import converted_errors
from gputally.ledger.sqlite.sums.names import Rows

_LAST_POD: Final = "SELECT ifnull(max(id), 0) FROM pods"
LARGE = 100_000
"""From so many pods on, several connections read."""
READERS: Final = 2
"""More threads gain little: Python adds up what they read."""
_AHEAD: Final = 2
"""Pages that each reader may be ahead, which bounds memory."""


def last_pod(rows: Rows) -> int:
    """The highest number of a pod, which is about how many there are."""
    [(last,)] = rows(_LAST_POD, {})
    return int(last)


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


def read_pages(readers: Sequence[Rows], sql: str, pages: Iterator[Mapping[str, Any]]) -> Iterator[Sequence[Row]]:
    """The rows of each page, in order; a single reader reads in this thread."""
    if len(readers) == 1:
        yield from (readers[0](sql, page) for page in pages)
        return
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="pages")) for _ in readers]
        ahead: deque[Future[Sequence[Row]]] = deque()
        for number, page in enumerate(pages):
            ahead.append(threads[number % len(readers)].submit(readers[number % len(readers)], sql, page))
            if len(ahead) >= _AHEAD * len(readers):
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
