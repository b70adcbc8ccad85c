"""Which ledger a URL or path names."""

from pathlib import Path

from gputally.errors import LedgerError
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.sqlite.sqlite_ledger import SqliteLedger
from gputally.ledger.sqlite.sqlite_reader import SqliteLedgerReader

_SQLITE = "sqlite:///"


def open_ledger(url: str) -> Ledger:
    """The ledger at `url`, a path or `sqlite:///` and a path, owned by this process and created if there is none.

    Raises: LedgerError when it cannot be opened, which leaves it untouched.
    """
    return SqliteLedger(_path(url))


def open_reader(url: str) -> LedgerReader:
    """A reader of the ledger at `url`, which another process may write meanwhile.

    Raises: LedgerError when there is none, or none that can be read.
    """
    return SqliteLedgerReader(_path(url))


def _path(url: str) -> Path:
    path = url.removeprefix(_SQLITE)
    if "://" in path:
        raise LedgerError(f"{url}: not a supported type of ledger; use a path, or sqlite:/// and a path")
    return Path(path)
