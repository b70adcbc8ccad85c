"""`gputally backup` copies a ledger at one instant, also while it is written."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from gputally.commands.in_pod import KUBECTL_EXEC, LEDGER
from gputally.commands.progress import ProgressLine, ending_cleanly
from gputally.errors import ConfigError, Problem
from gputally.formatting.times import accounted
from gputally.process.settings import add_epilog, add_flags

_EXAMPLES: Final = f"""\
Works while the aggregator writes: the backup is the ledger at one instant. It is checked, and gets its name only when
it is complete. Meanwhile SQLite cannot reuse the WAL, so that file grows by what is written. The folder of TARGET, or
for - that of the ledger, needs free space for a copy.

examples:
  gputally backup --ledger gputally.db backup.db
  {KUBECTL_EXEC} gputally backup - > backup.db
"""


def add_backup_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_backup)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER,))
    command.add_argument("--force", action="store_true", help="overwrite TARGET")
    command.add_argument("--no-check", action="store_true", help="copy a damaged ledger too, as evidence")
    command.add_argument("target", metavar="TARGET", help="file to write; - is standard output")


def backup(ledger: str, target: str, *, force: bool, check: bool) -> int:
    """Copy the ledger to the file `target`, or to standard output if it is `-`. Raises: ConfigError, LedgerError."""
    from gputally.formatting.amounts import file_size  # noqa: PLC0415 - with parts of the model, which --help needs not
    from gputally.ledger.open_stored import stored_ledger  # noqa: PLC0415 - SQLite, which --help needs not

    stored = stored_ledger(ledger)
    if target == "-" and sys.stdout.isatty():
        raise ConfigError([Problem("", "backup -", "standard output is a terminal; redirect it: > backup.db")])
    with ending_cleanly(), ProgressLine() as report:
        if target == "-":
            done = stored.back_up_to_stream(sys.stdout.buffer, check=check, report=report)
        else:
            done = stored.back_up_to_file(Path(target), force=force, check=check, report=report)
    checked = "no damage found" if check else "not checked"
    name = "standard output" if target == "-" else target
    sys.stderr.write(
        f"{stored.name}: backed up to {name}: {file_size(done.size_bytes)}, {accounted(done.accounted_us)}, {checked}\n"
    )
    return 0


def _backup(parsed: Namespace) -> int:
    return backup(parsed.ledger, parsed.target, force=parsed.force, check=not parsed.no_check)
