"""`gputally backup`: a consistent copy of a ledger."""

import sys
from pathlib import Path

from gputally.errors import ConfigError, Problem
from gputally.ledger.open import path_of
from gputally.ledger.sqlite.maintenance.take_backup import back_up_to_file, back_up_to_stream
from gputally.ledger_commands.plain_text import accounted, size
from gputally.ledger_commands.progress_line import ProgressLine, ending_cleanly


def backup(ledger: str, target: str, *, force: bool, check: bool) -> int:
    """Copy the ledger to the file `target`, or to standard output if it is `-`. Raises: ConfigError, LedgerError."""
    path = path_of(ledger)
    if target == "-" and sys.stdout.isatty():
        raise ConfigError([Problem("", "backup -", "standard output is a terminal; redirect it: > backup.db")])
    with ending_cleanly(), ProgressLine() as report:
        if target == "-":
            done = back_up_to_stream(path, sys.stdout.buffer, check=check, report=report)
        else:
            done = back_up_to_file(path, Path(target), force=force, check=check, report=report)
    checked = "no damage found" if check else "not checked"
    name = "standard output" if target == "-" else target
    sys.stderr.write(
        f"{path}: backed up to {name}: {size(done.size_bytes)}, {accounted(done.accounted_us)}, {checked}\n"
    )
    return 0
