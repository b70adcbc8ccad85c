"""The flags of `gputally ledger`, `gputally backup` and `gputally restore`."""

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from math import inf
from typing import Final

from gputally.ledger_commands.in_pod import PLUGIN_HELP
from gputally.setting import Parser, Setting, add_flags

LEDGER: Final = Setting("ledger", "gputally.db", "FILE", "SQLite ledger, as a path or sqlite:///PATH")
"""The flag of all commands that read a ledger."""
_POD: Final = "kubectl exec -n gputally deploy/gputally-aggregator --"

_INFO: Final = f"""\
Works beside a running aggregator: it never blocks it and changes nothing.

{PLUGIN_HELP}
examples:
  gputally ledger info --ledger gputally.db
  kubectl gputally ledger info --output json
"""
_CHECK: Final = f"""\
Reads the whole file: pages and indexes, whether the rows are complete, and whether the pods add up. It takes some
seconds for each GB. Works beside a running aggregator, but while it reads, SQLite cannot reuse the WAL, so that file
grows by what is written meanwhile.

exit status: 0 no damage found, 4 damaged

example:
  {_POD} gputally ledger check
"""
_QUERY: Final = """\
The statement can only read. Times (_us) are microseconds since 1970 in UTC, quantities millionths of a GPU; nothing is
converted. csv and json (one object per line) print rows as they are read. While a query runs, SQLite cannot reuse the
WAL, so that file grows by what is written meanwhile: hence --timeout.
docs/architecture.md#ledger describes the tables.

examples:
  gputally ledger query "SELECT tenant, count(*) AS segments FROM allocation_segments GROUP BY tenant"
  gputally ledger query --output csv - < report.sql > report.csv
  kubectl exec -n gputally deploy/gputally-aggregator -- gputally ledger query "SELECT * FROM preemptions"
"""
_BACKUP: Final = f"""\
Works while the aggregator writes: the backup is the ledger at one instant. It is checked, and gets its name only when
it is complete. Meanwhile SQLite cannot reuse the WAL, so that file grows by what is written. The folder of TARGET, or
for - that of the ledger, needs free space for a copy.

examples:
  gputally backup --ledger gputally.db backup.db
  {_POD} gputally backup - > backup.db
"""
_RESTORE: Final = """\
Stop the aggregator first. The backup is checked before anything changes, and the previous ledger is kept as
LEDGER.before-restore-TIME. What was accounted since the backup is lost, except for what the API server still knows:
docs/backup.md.

example, in a pod that mounts the volume of the ledger, while the aggregator is scaled to 0:
  kubectl exec -i -n gputally gputally-restore -- gputally restore - < backup.db
"""


def add_ledger_commands(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add `ledger` with its commands, `backup` and `restore`."""
    ledger = add_command(commands, "ledger", "inspect, check and query a ledger, also while it is written", "")
    inner = ledger.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)

    info = add_command(inner, "info", "show the state of a ledger: cluster, times, sizes, free space, counts", _INFO)
    _finish(info, _info, output=("table", "json"))
    check = add_command(inner, "check", "check a whole ledger for damage", _CHECK)
    _finish(check, _check, output=("table", "json"))
    query = add_command(inner, "query", "run an SQL query on a ledger; it cannot change anything", _QUERY)
    _finish(query, _query, output=("table", "csv", "json"))
    query.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS", default=30.0, help="stop a query that takes longer [default: 30]"
    )
    query.add_argument("sql", metavar="SQL", help="one SELECT statement; - reads it from standard input")

    backup = add_command(commands, "backup", "back up a ledger, also while it is written", _BACKUP)
    _finish(backup, _backup)
    backup.add_argument("--force", action="store_true", help="overwrite TARGET")
    backup.add_argument("--no-check", action="store_true", help="copy a damaged ledger too, as evidence")
    backup.add_argument("target", metavar="TARGET", help="file to write; - is standard output")

    restore = add_command(commands, "restore", "replace a ledger by its backup", _RESTORE)
    _finish(restore, _restore)
    restore.add_argument(
        "--force", action="store_true", help="replace the ledger of another cluster, or a file that is no ledger"
    )
    restore.add_argument("backup", metavar="BACKUP", help="file that 'gputally backup' wrote; - is standard input")


def add_command(commands: "argparse._SubParsersAction[Parser]", name: str, summary: str, epilog: str) -> ArgumentParser:
    """Add a command; its description is `summary`, and `epilog` follows its flags as it is."""
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _finish(command: ArgumentParser, run: Callable[[Namespace], int], *, output: tuple[str, ...] = ()) -> None:
    command.set_defaults(run=run)
    add_flags(command, (LEDGER,))
    if output:
        command.add_argument("--output", choices=output, default=output[0], help="[default: %(default)s]")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if 0 < value < inf:
        return value
    raise argparse.ArgumentTypeError(f"'{text}' is not valid; use a number of seconds above 0, such as 30")


def _info(parsed: Namespace) -> int:
    from gputally.ledger_commands.info_command import info  # noqa: PLC0415 - imports SQLite, as those below

    return info(parsed.ledger, output=parsed.output)


def _check(parsed: Namespace) -> int:
    from gputally.ledger_commands.check_command import check  # noqa: PLC0415 - see above

    return check(parsed.ledger, output=parsed.output)


def _query(parsed: Namespace) -> int:
    from gputally.ledger_commands.query_command import query  # noqa: PLC0415 - see above

    return query(parsed.ledger, parsed.sql, output=parsed.output, timeout_s=parsed.timeout)


def _backup(parsed: Namespace) -> int:
    from gputally.ledger_commands.backup_command import backup  # noqa: PLC0415 - see above

    return backup(parsed.ledger, parsed.target, force=parsed.force, check=not parsed.no_check)


def _restore(parsed: Namespace) -> int:
    from gputally.ledger_commands.restore_command import restore_ledger  # noqa: PLC0415 - see above

    return restore_ledger(parsed.ledger, parsed.backup, force=parsed.force)
