"""Opens ledgers to read, by URL or path."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gputally.errors import LedgerError
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.sqlite.file import reading
from gputally.ledger.sqlite.reader import SqliteLedgerReader
from gputally.ledger.sqlite.schema import expect_current, version_of

_SQLITE = "sqlite:///"


def open_reader(url: str) -> LedgerReader:
    """Open a reader of the ledger at `url`, to which another process may write concurrently.

    Raises: LedgerError if the ledger does not exist or cannot be read.
    """
    return SqliteLedgerReader(path_of(url))


@contextmanager
def reading_once(url: str, *, is_snapshot: bool = False) -> Iterator[LedgerReader]:
    """A reader for one result, which leaves no files behind, even beside a copy that nothing else uses.

    All reads of a snapshot see the ledger at one moment. The WAL grows with each write until it ends.

    Raises: LedgerError as `open_reader` does, and if such a copy was changed in the meantime.
    """
    path = path_of(url)
    with reading(path) as connection:
        expect_current(path, version_of(connection))
        if is_snapshot:
            connection.execute("BEGIN")
        yield SqliteLedgerReader(path, connection)


def path_of(url: str) -> Path:
    """The file of the ledger at `url`. Raises: LedgerError for another type of ledger."""
    path = url.removeprefix(_SQLITE)
    if "://" in path:
        raise LedgerError(f"{url}: not a supported type of ledger; use a path, or sqlite:/// and a path")
    return Path(path)
