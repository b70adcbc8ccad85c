"""Opens ledgers for operators, by URL or path."""

from gputally.ledger.open import path_of
from gputally.ledger.sqlite.stored import SqliteStoredLedger
from gputally.ledger.stored import StoredLedger


def stored_ledger(url: str) -> StoredLedger:
    """The ledger at `url`, a path or `sqlite:///` and a path, which need not exist.

    Raises: LedgerError for another type of ledger.
    """
    return SqliteStoredLedger(path_of(url))
