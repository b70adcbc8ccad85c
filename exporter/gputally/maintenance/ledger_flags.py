"""The flags of `gputally ledger`, `gputally backup` and `gputally restore`."""

import argparse
from collections.abc import Callable
from typing import Any

from gputally.setting import Setting, add_flags

_LEDGER = Setting("ledger", "gputally.db", "FILE", "the ledger of the aggregator, as a path or sqlite:///PATH")
"""With the name, variable and default of the aggregator's own flag."""
_LEDGER_EXAMPLES = """\
examples:
  gputally ledger info
  gputally ledger check
  gputally ledger query "SELECT tenant, count(DISTINCT pod_uid) AS pods FROM allocation_segments GROUP BY 1"
  kubectl exec -n gputally deploy/gputally-aggregator -- gputally ledger info

All of them run beside an aggregator, and change nothing.
"""
_QUERY_EXAMPLES = """\
examples:
  gputally ledger query "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view')"
  gputally ledger query --output csv - < report.sql > report.csv

Times are microseconds since 1970, quantities are millionths of a GPU. A query reads one state of the ledger. While it
runs, the write-ahead log (WAL) beside the ledger grows: run long ones on a backup.
"""
_BACKUP_EXAMPLES = """\
examples:
  gputally backup gputally-2026-10.db
  kubectl exec -n gputally deploy/gputally-aggregator -- gputally backup - > gputally-2026-10.db

The backup is the ledger at one moment, also while an aggregator writes. It is one file, and itself a ledger: reports
can read it.
"""
_RESTORE_EXAMPLES = """\
examples:
  gputally restore gputally-2026-10.db
  gputally restore - < gputally-2026-10.db

Stop the aggregator first. The previous ledger is kept as LEDGER.before-restore-TIME. See docs/backup.md for what the
aggregator does afterwards.
"""


def add_ledger_commands(command: argparse.ArgumentParser, run: Callable[..., int]) -> None:
    """Add `info`, `check` and `query`."""
    _teach(command, _LEDGER_EXAMPLES)
    commands = command.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="what")
    for name, summary in (
        ("info", "show the cluster, size, age and contents of the ledger, and who writes it"),
        ("check", "read the whole ledger, and report the first damage"),
        ("query", "run a SELECT"),
    ):
        found = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
        )
        found.set_defaults(run=run)
        _add_ledger(found)
        _add_output(found, ("table", "csv", "json") if name == "query" else ("table", "json"))
        if name == "query":
            _teach(found, _QUERY_EXAMPLES)
            found.add_argument("--timeout", type=float, metavar="SECONDS", default=30.0, help="[default: 30]")
            found.add_argument("sql", metavar="SQL", help="the SELECT; - reads it from standard input")


def add_backup_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags of `gputally backup`."""
    _teach(command, _BACKUP_EXAMPLES)
    _add_ledger(command)
    command.add_argument("--force", action="store_true", help="overwrite an existing file")
    command.add_argument("--no-verify", action="store_true", help="also copy a damaged ledger, to keep the evidence")
    command.add_argument("target", metavar="FILE", help="the backup to write; - is standard output")


def add_restore_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags of `gputally restore`."""
    _teach(command, _RESTORE_EXAMPLES)
    _add_ledger(command)
    command.add_argument("--force", action="store_true", help="also restore a backup of another cluster")
    command.add_argument("source", metavar="FILE", help="the backup to restore; - is standard input")


def _teach(command: argparse.ArgumentParser, examples: str) -> None:
    command.epilog, command.formatter_class = examples, argparse.RawDescriptionHelpFormatter


def _add_ledger(command: argparse.ArgumentParser) -> None:
    add_flags(command, [_LEDGER])


def _add_output(command: Any, forms: tuple[str, ...]) -> None:  # noqa: ANN401 - argparse has no type for it
    command.add_argument("--output", choices=forms, default="table", help="[default: table]")
