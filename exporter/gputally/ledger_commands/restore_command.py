"""`gputally restore`: replaces a ledger by its backup."""

import sys
from pathlib import Path

from gputally.errors import ConfigError, Problem
from gputally.ledger.open import path_of
from gputally.ledger.sqlite.maintenance.restoring import restore
from gputally.ledger_commands.plain_text import accounted
from gputally.ledger_commands.progress_line import ProgressLine, ending_cleanly


def restore_ledger(ledger: str, backup: str, *, force: bool) -> int:
    """Replace the ledger by the file `backup`, or by standard input if it is `-`. Raises: ConfigError, LedgerError."""
    path = path_of(ledger)
    if backup == "-" and sys.stdin.isatty():
        raise ConfigError([Problem("", "restore -", "standard input is a terminal; redirect it: < backup.db")])
    with ending_cleanly(), ProgressLine() as report:
        done = restore(sys.stdin.buffer if backup == "-" else Path(backup), path, force=force, report=report)
    kept = f"the previous ledger is kept as {done.kept}" if done.kept else "there was no ledger before"
    sys.stderr.write(f"{path}: restored, schema {done.schema}, {accounted(done.accounted_us)}; {kept}\n")
    return 0
