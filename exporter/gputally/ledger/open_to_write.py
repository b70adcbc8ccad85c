"""Opens ledgers to write, by URL or path; readers need none of what restores the state of accounting."""

from gputally.ledger.open import path_of
from gputally.ledger.protocol import Ledger
from gputally.ledger.sqlite.imported_jobs import SqliteImportLedger
from gputally.ledger.sqlite.writer import SqliteLedger


def open_ledger(url: str) -> Ledger:
    """Open the ledger at `url`, a path or `sqlite:///` and a path; creates it if needed. This process then owns it.

    Raises: LedgerError if it cannot be opened; it is left untouched.
    """
    return SqliteLedger(path_of(url))


def open_import_ledger(url: str) -> SqliteImportLedger:
    """Open the ledger of imported jobs at `url`; creates it if needed. This process then owns it.

    Raises: LedgerError as `open_ledger` does, and for the ledger of a cluster.
    """
    return SqliteImportLedger(path_of(url))
