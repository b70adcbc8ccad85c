"""`gputally explain` shows the allocations, prices and dates behind a number of a report."""

from argparse import ArgumentParser, Namespace
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.question_flags import PERIODS, add_history_flag, add_question_flags, asked
from gputally.process.settings import add_epilog, add_flags
from gputally.questions.explain import Explain

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


def add_explain_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_explain)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER,))
    add_history_flag(command)
    add_question_flags(command, Explain)


def _explain(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.explain import explain_numbers  # noqa: PLC0415 - for --help the flags suffice
    from gputally.commands.from_ledger.reading import LedgerFiles  # noqa: PLC0415 - as above

    return explain_numbers(asked(parsed, Explain), LedgerFiles(parsed.ledger, parsed.history))
