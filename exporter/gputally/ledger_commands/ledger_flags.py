"""The flags of `gputally ledger`, `gputally backup` and `gputally restore`."""

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from math import inf
from typing import Final

from gputally.ledger_commands.in_pod import PLUGIN_HELP
from gputally.setting import Parser, Setting, add_epilog, add_flags

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


def add_ledger_commands(command: ArgumentParser) -> None:
    """Add `info`, `check` and `query`, with their flags."""
    add_epilog(command, "")
    inner = command.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)

    info = _command(inner, "info", "show the state of a ledger: cluster, times, sizes, free space, counts", _INFO)
    _finish(info, _info, output=("table", "json"))
    check = _command(inner, "check", "check a whole ledger for damage", _CHECK)
    _finish(check, _check, output=("table", "json"))
    query = _command(inner, "query", "run an SQL query on a ledger; it cannot change anything", _QUERY)
    _finish(query, _query, output=("table", "csv", "json"))
    query.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS", default=30.0, help="stop a query that takes longer [default: 30]"
    )
    query.add_argument("sql", metavar="SQL", help="one SELECT statement; - reads it from standard input")


def add_backup_flags(command: ArgumentParser) -> None:
    """Add the flags of `backup`, with examples."""
    add_epilog(command, _BACKUP)
    _finish(command, _backup)
    command.add_argument("--force", action="store_true", help="overwrite TARGET")
    command.add_argument("--no-check", action="store_true", help="copy a damaged ledger too, as evidence")
    command.add_argument("target", metavar="TARGET", help="file to write; - is standard output")


def add_restore_flags(command: ArgumentParser) -> None:
    """Add the flags of `restore`, with an example."""
    add_epilog(command, _RESTORE)
    _finish(command, _restore)
    command.add_argument(
        "--force", action="store_true", help="replace the ledger of another cluster, or a file that is no ledger"
    )
    command.add_argument("backup", metavar="BACKUP", help="file that 'gputally backup' wrote; - is standard input")


def _command(commands: "argparse._SubParsersAction[Parser]", name: str, summary: str, examples: str) -> ArgumentParser:
    description = f"{summary[0].upper()}{summary[1:]}."
    command = commands.add_parser(name, help=summary, description=description, allow_abbrev=False)
    add_epilog(command, examples)
    return command


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
    from gputally.ledger_commands.info_command import info  # noqa: PLC0415 - other commands have LEDGER from here, without SQLite

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
