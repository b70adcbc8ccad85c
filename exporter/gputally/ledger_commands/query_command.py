"""`gputally ledger query`: the rows of an SQL query."""

import sys

from gputally.ledger.open import path_of
from gputally.ledger.sqlite.query import queried
from gputally.ledger_commands.plain_text import write_rows
from gputally.ledger_commands.progress_line import ending_at_once


def query(ledger: str, sql: str, *, output: str, timeout_s: float) -> int:
    """Print the rows of the statement `sql`, or of the one on standard input if it is `-`. Raises: LedgerError."""
    text = sys.stdin.read() if sql == "-" else sql
    with ending_at_once(), queried(path_of(ledger), text, timeout_s=timeout_s) as (columns, rows):
        write_rows(sys.stdout, columns, rows, output=output)
        sys.stdout.flush()
    return 0
