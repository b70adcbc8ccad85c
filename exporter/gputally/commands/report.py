"""`gputally report` reports GPU-hours and cost of a period."""

from argparse import ArgumentParser, Namespace
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.question_flags import PERIODS, add_history_flag, add_question_flags, asked
from gputally.process.settings import add_epilog, add_flags
from gputally.questions.report import Report

_EXAMPLES: Final = f"""\
Works beside a running aggregator: it never blocks it and changes nothing. A report ends at the last time that the
ledger is complete, and begins at the accounting start at the earliest. Rows always add up to the total.

{PERIODS}
A comparison splits each difference: jobs that only one of the periods has; of the others, more or fewer GPU-hours, a
mix of dearer or cheaper models, tiers and purchase options, and prices.

{PLUGIN_HELP}
examples:
  gputally report --window last-month --by tenant,tier --ledger gputally.db
  gputally report --window 2026-10 --by job --top 10 --where tenant=research
  gputally report --window last-month --compare previous --by tenant
  gputally report --window last-month --by gpu_model,tenant --unallocated
  gputally report --window last-month --waterfall --by tier
  gputally report --preset team --where tenant=research --window last-month
  gputally report --window 2026-10 --by day,tenant --time-zone Europe/Berlin --output csv
  gputally report --window 7d --by hours,tier --hours 'business=Mon-Fri 9-17' --hours 'night=Mon-Sun 22-6'
  gputally report --window 2026-10 --output focus > october.focus.csv
  kubectl gputally report --window 7d --output csv > week.csv
"""


def add_report_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_report)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER,))
    add_history_flag(command)
    add_question_flags(command, Report)


def _report(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.reading import LedgerFiles  # noqa: PLC0415 - as above
    from gputally.commands.from_ledger.report import report  # noqa: PLC0415 - for --help the flags suffice

    return report(asked(parsed, Report), LedgerFiles(parsed.ledger, parsed.history))
