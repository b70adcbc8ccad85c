"""`gputally preemptions` lists pods that lost their GPUs involuntarily."""

from argparse import ArgumentParser, Namespace
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.question_flags import PERIODS, add_history_flag, add_question_flags, asked
from gputally.model.disruptions import Cause
from gputally.process.settings import add_epilog, add_flags
from gputally.questions.preemptions import Preemptions

_EXAMPLES: Final = f"""\
Lists pods that lost their GPUs before they had ended by themselves: when and why, which tier took the GPUs, and how
long it took until the containers had stopped and until a replacement ran. Works beside a running aggregator: it never
blocks it and changes nothing.

With --by job it lists one record for each job and time: by which tiers and which rule, what it cost, and what would
have prevented it or made it cheaper.

columns for --where: tier, tenant, namespace, pod, job_kind, job and node of the victim
causes: {", ".join(Cause)}

{PERIODS}
{PLUGIN_HELP}
examples:
  gputally preemptions --window 7d --where tenant=research --ledger gputally.db
  gputally preemptions --window 2026-10 --cause spot_reclaim --output csv
  gputally preemptions --window 7d --by job --where tenant=research
  kubectl gputally preemptions --window today --where namespace=ml --where job=train
"""


def add_preemptions_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_preemptions)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER,))
    add_history_flag(command)
    add_question_flags(command, Preemptions)


def _preemptions(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.preemptions import list_preemptions  # noqa: PLC0415 - for --help the flags suffice
    from gputally.commands.from_ledger.reading import LedgerFiles  # noqa: PLC0415 - as above

    return list_preemptions(asked(parsed, Preemptions), LedgerFiles(parsed.ledger, parsed.history))
