"""The flags of `gputally explain`."""

import argparse
from argparse import Namespace
from typing import Final

from gputally.ledger_commands.in_pod import PLUGIN_HELP
from gputally.ledger_commands.ledger_flags import LEDGER, add_command
from gputally.ledger_commands.report.report_flags import PERIODS, add_rows_flags, add_scope_flags
from gputally.setting import Parser, add_flags

_EXAMPLES: Final = f"""\
Use the flags of 'gputally report', and one --where for each column of the row that you ask about, such as tenant or
day. GPU-hours and cost add up to those of the row. Works beside a running aggregator: it never blocks it and changes
nothing.

{PERIODS}
{PLUGIN_HELP}
examples:
  gputally explain --window 2026-10 --where tenant=research --where tier=batch --ledger gputally.db
  gputally explain --window last-month --where namespace=ml --where job=train --top 5
  gputally explain --window 2026-10 --where tenant=research --where day=2026-10-05 --time-zone Europe/Berlin
  kubectl gputally explain --window 7d --where pod=train-0 --output csv > train-0.csv
"""


def add_explain_command(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add `explain`."""
    summary = "explain a number of a report: its allocations, prices and dates"
    command = add_command(commands, "explain", summary, _EXAMPLES)
    command.set_defaults(run=_explain)
    add_flags(command, (LEDGER,))
    add_scope_flags(command)
    add_rows_flags(command, top="pods with the highest cost, the highest first")
    command.add_argument("--output", choices=("table", "csv", "json"), default="table", help="[default: table]")


def _explain(parsed: Namespace) -> int:
    from gputally.ledger_commands.explain.explain_command import (  # noqa: PLC0415 - imports SQLite
        ExplainOptions,
        explain_numbers,
    )
    from gputally.ledger_commands.report.report_scope import ScopeOptions  # noqa: PLC0415 - as above

    scope = ScopeOptions.of(parsed)
    return explain_numbers(ExplainOptions(scope=scope, top=parsed.top, output=parsed.output, decimals=parsed.decimals))
