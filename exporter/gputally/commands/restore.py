"""`gputally restore` replaces a ledger by its backup."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from gputally.commands.in_pod import LEDGER
from gputally.commands.progress import ProgressLine, ending_cleanly
from gputally.errors import ConfigError, Problem
from gputally.formatting.times import accounted
from gputally.process.settings import add_epilog, add_flags

_EXAMPLES: Final = """\
Stop the aggregator first. The backup is checked before anything changes, and the previous ledger is kept as
LEDGER.before-restore-TIME. What was accounted since the backup is lost, except for what the API server still knows:
docs/backup.md.

example, in a pod that mounts the volume of the ledger, while the aggregator is scaled to 0:
  kubectl exec -i -n gputally gputally-restore -- gputally restore - < backup.db
"""


def add_restore_flags(command: ArgumentParser) -> None:
    """Add all flags, with an example."""
    command.set_defaults(run=_restore)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER,))
    command.add_argument(
        "--force", action="store_true", help="replace the ledger of another cluster, or a file that is no ledger"
    )
    command.add_argument("backup", metavar="BACKUP", help="file that 'gputally backup' wrote; - is standard input")


def restore_ledger(ledger: str, backup: str, *, force: bool) -> int:
    """Replace the ledger by the file `backup`, or by standard input if it is `-`. Raises: ConfigError, LedgerError."""
    from gputally.ledger.open_stored import stored_ledger  # noqa: PLC0415 - SQLite, which --help needs not

    stored = stored_ledger(ledger)
    if backup == "-" and sys.stdin.isatty():
        raise ConfigError([Problem("", "restore -", "standard input is a terminal; redirect it: < backup.db")])
    with ending_cleanly(), ProgressLine() as report:
        source = sys.stdin.buffer if backup == "-" else Path(backup)
        done = stored.restore(source, force=force, report=report)
    kept = f"the previous ledger is kept as {done.kept}" if done.kept else "there was no ledger before"
    sys.stderr.write(f"{stored.name}: restored, schema {done.schema}, {accounted(done.accounted_us)}; {kept}\n")
    return 0


def _restore(parsed: Namespace) -> int:
    return restore_ledger(parsed.ledger, parsed.backup, force=parsed.force)
