"""`gputally rerate` says what a period costs by another price book. It writes nothing."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.question_flags import PERIODS, add_history_flag, add_question_flags, asked
from gputally.model.price import Purchase
from gputally.process.settings import add_epilog, add_flags
from gputally.questions.rerate import Rerate

_EXAMPLES: Final = f"""\
Writes nothing: the ledger keeps the prices that it recorded. Works beside a running aggregator.

What did spot save? --purchase on-demand rates spot nodes as if they were bought on demand: the column difference is
what spot saved, by the prices of the price book. Without a price for that, GPU-hours are unpriced.

{PERIODS}
{PLUGIN_HELP}
examples:
  gputally rerate --prices new.yaml --window last-month --by tenant --ledger gputally.db
  gputally rerate --prices new.yaml --against old.yaml --window 2026-10 --by tenant,tier --output csv
  gputally rerate --prices prices.yaml --purchase on-demand --window last-month --by tenant --where purchase=spot
  kubectl gputally rerate --prices - --window last-month < new.yaml
"""


def add_rerate_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_rerate)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER,))
    add = command.add_argument
    add("--prices", metavar="FILE", type=Path, required=True, help="price book (YAML); - is standard input")
    add(
        "--against",
        metavar="FILE",
        type=Path,
        help="price book to compare with; without it, the prices that the ledger recorded",
    )
    add(
        "--purchase",
        type=Purchase,
        choices=(Purchase.ON_DEMAND, Purchase.RESERVED),
        metavar="OPTION",
        help="rate spot nodes by --prices as if they were bought on-demand or reserved",
    )
    add_history_flag(command)
    add_question_flags(command, Rerate)


def _rerate(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.reading import LedgerFiles  # noqa: PLC0415 - as above
    from gputally.commands.from_ledger.rerate import RerateOptions, rerate  # noqa: PLC0415 - for --help the flags suffice

    options = RerateOptions(prices=parsed.prices, against=parsed.against, purchase=parsed.purchase)
    return rerate(asked(parsed, Rerate), LedgerFiles(parsed.ledger, parsed.history), options)
