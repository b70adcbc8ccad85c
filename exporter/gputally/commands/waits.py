"""`gputally waits` reports how long pods waited for GPUs in a period."""

from argparse import ArgumentParser, Namespace
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.question_flags import PERIODS, add_question_flags, asked
from gputally.model.waits import WaitCause
from gputally.process.settings import add_epilog, add_flags
from gputally.questions.waits import Waits

_EXAMPLES: Final = f"""\
Sums up how long pods waited for GPUs in a period: for what, at what cost, and which tier and tenant held what they
needed. Pods that a quota, admission or a queue kept from being created have rows of their own. Works beside a running
aggregator: it never blocks it and changes nothing.

causes: {", ".join(WaitCause)}

{PERIODS}
{PLUGIN_HELP}
examples:
  gputally waits --window 7d --where tenant=research --ledger gputally.db
  gputally waits --window last-month --by tier,cause
  gputally waits --window 7d --where tenant=research,cause=capacity --by occupying_tier,occupying_tenant
  gputally waits --window today --by pod --top 20
  kubectl gputally waits --window 7d --by day,tenant --output csv > waits.csv
"""


def add_waits_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_waits)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER,))
    add_question_flags(command, Waits)


def _waits(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.reading import LedgerFiles  # noqa: PLC0415 - for --help the flags suffice
    from gputally.commands.from_ledger.waits import report_waits  # noqa: PLC0415 - as above

    return report_waits(asked(parsed, Waits), LedgerFiles(parsed.ledger))
