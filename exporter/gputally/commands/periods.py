"""`gputally periods` lists the closed periods of a ledger, or shows the invoice of one."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.output_flags import add_decimals_flag, add_output_flag
from gputally.process.settings import add_epilog, add_flags
from gputally.reports.choices import INVOICE_DIMENSIONS

_DIMENSIONS: Final = ", ".join(INVOICE_DIMENSIONS)

_EXAMPLES: Final = f"""\
The aggregator closes periods: docs/closing.md. Without PERIOD, all closed periods are listed. With it, its invoice:
what it was closed with, and as rows of their own the corrections of earlier periods. The hashes of all closed periods
are verified each time.

Works beside a running aggregator: it never blocks it and changes nothing.

exit status: 0 verified, 4 a closed period was changed

{PLUGIN_HELP}
examples:
  gputally periods --ledger gputally.db
  gputally periods 2026-10 --by tenant,tier
  gputally periods 2026-10 --by tenant --output csv > october.csv
  gputally periods 2026-11 --preview
"""


def add_periods_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_periods)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER,))
    add = command.add_argument
    add("period", nargs="?", metavar="PERIOD", help="the name of a closed period, such as 2026-10")
    add(
        "--by",
        type=_dimensions,
        metavar="DIMENSION,...",
        default=("tenant", "tier"),
        help=f"what a row stands for: {_DIMENSIONS} [default: tenant,tier]",
    )
    add(
        "--preview",
        action="store_true",
        help="what would be stored if PERIOD, a month, quarter, year, day or FROM/TO, were closed next",
    )
    add("--time-zone", metavar="ZONE", default="UTC", help="of a preview, e.g. Europe/Berlin [default: UTC]")
    add_output_flag(command)
    add_decimals_flag(command)


def _dimensions(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if unknown := [name for name in names if name not in INVOICE_DIMENSIONS]:
        raise ArgumentTypeError(f"'{unknown[0]}' is not valid; use {_DIMENSIONS}")
    return names


def _periods(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.periods import PeriodOptions, periods  # noqa: PLC0415 - for --help the flags suffice

    options = PeriodOptions(
        period=parsed.period,
        by=parsed.by,
        preview=parsed.preview,
        time_zone=parsed.time_zone,
        output=parsed.output,
        decimals=parsed.decimals,
    )
    return periods(parsed.ledger, options)
