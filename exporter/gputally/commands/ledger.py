"""`gputally ledger` inspects, checks and queries a ledger, also while it is written."""

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from math import inf
from typing import Final

from gputally.commands.in_pod import KUBECTL_EXEC, LEDGER, PLUGIN_HELP
from gputally.process.settings import Parser, add_epilog, add_flags

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
  {KUBECTL_EXEC} gputally ledger check
"""
_QUERY: Final = """\
The statement can only read. Times (_us) are microseconds since 1970 in UTC, quantities millionths of a GPU; nothing is
converted. csv and json (one object per line) print rows as they are read. While a query runs, SQLite cannot reuse the
WAL, so that file grows by what is written meanwhile: hence --timeout.
docs/accounting.md#ledger describes the tables.

examples:
  gputally ledger query "SELECT tenant, count(*) AS segments FROM allocation_segments GROUP BY tenant"
  gputally ledger query --output csv - < report.sql > report.csv
  kubectl exec -n gputally deploy/gputally-aggregator -- gputally ledger query "SELECT * FROM preemptions"
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


def _command(commands: "argparse._SubParsersAction[Parser]", name: str, summary: str, examples: str) -> ArgumentParser:
    description = f"{summary[0].upper()}{summary[1:]}."
    command = commands.add_parser(name, help=summary, description=description, allow_abbrev=False)
    add_epilog(command, examples)
    return command


def _finish(command: ArgumentParser, run: Callable[[Namespace], int], *, output: tuple[str, ...]) -> None:
    command.set_defaults(run=run)
    add_flags(command, (LEDGER,))
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
    from gputally.commands.from_ledger.ledger import info  # noqa: PLC0415 - SQLite, which --help needs not

    return info(parsed.ledger, output=parsed.output)


def _check(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.ledger import check  # noqa: PLC0415 - see above

    return check(parsed.ledger, output=parsed.output)


def _query(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.ledger import query  # noqa: PLC0415 - see above

    return query(parsed.ledger, parsed.sql, output=parsed.output, timeout_s=parsed.timeout)
