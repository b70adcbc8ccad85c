"""`gputally rerate` says what a period costs by another price book. It writes nothing."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.output_flags import add_output_flag
from gputally.commands.scope_flags import PERIODS, ScopeOptions, add_dimensions_flag, add_rows_flags, add_scope_flags
from gputally.model.price import Purchase
from gputally.process.settings import add_epilog, add_flags

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
    add_scope_flags(command)
    add_dimensions_flag(command)
    add_rows_flags(command, top="rows with the largest difference")
    add_output_flag(command)


def _rerate(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.rerate import RerateOptions, rerate  # noqa: PLC0415 - for --help the flags suffice

    names = ("prices", "against", "purchase", "by", "top", "output", "decimals")
    return rerate(RerateOptions(**{name: getattr(parsed, name) for name in names}, scope=ScopeOptions.of(parsed)))
