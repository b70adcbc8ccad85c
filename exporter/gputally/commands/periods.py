"""`gputally periods` lists the closed periods of a ledger, or shows the invoice of one."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.commands.scope import time_zone
from gputally.errors import ConfigError, LedgerDamaged, Problem
from gputally.ledger.closed_period import ClosedPeriod, broken_chain
from gputally.ledger.open import reading_once
from gputally.ledger.protocol import LedgerReader
from gputally.output.periods import Invoice, write_invoice, write_list
from gputally.output.scope import PLACES
from gputally.process.settings import add_epilog, add_flags
from gputally.reports.closing import INVOICE_DIMENSIONS, draft_period
from gputally.reports.windows import parse_window


class PeriodOptions(Struct, frozen=True, kw_only=True):
    """The flags of the command; without `period`, all are listed."""

    period: str | None
    by: tuple[str, ...]
    preview: bool
    time_zone: str
    output: str
    decimals: int | None

    @property
    def places(self) -> int:
        """The decimals of amounts."""
        return PLACES[self.output] if self.decimals is None else self.decimals


def periods(ledger: str, options: PeriodOptions) -> int:
    """Print the list or the invoice.

    Raises: LedgerDamaged, after it, if a closed period was changed; other LedgerErrors; ConfigError for a wrong period.
    """
    with ending_at_once(), reading_once(ledger) as reader, ProgressLine() as progress:
        progress("reading the ledger ...")
        closed = reader.closed_periods()
        broken = broken_chain(closed)
        chosen = _preview(reader, options) if options.preview else _chosen(closed, options.period)
    if chosen is None:
        write_list(sys.stdout, closed, broken, output=options.output, places=options.places)
    else:
        invoice = Invoice(period=chosen, closed=closed, by=options.by, places=options.places)
        write_invoice(sys.stdout, invoice, output=options.output)
    sys.stdout.flush()
    if broken:
        raise LedgerDamaged(f"{broken.text}; compare it with a backup: docs/closing.md#verification")
    return 0


def _chosen(closed: Sequence[ClosedPeriod], name: str | None) -> ClosedPeriod | None:
    if name is None:
        return None
    found = next((each for each in closed if each.name == name), None)
    if found is None:
        names = ", ".join(each.name for each in closed[-12:]) or "none"
        raise ConfigError([Problem("", "PERIOD", f"'{name}' is not closed; the latest closed periods are: {names}")])
    return found


def _preview(reader: LedgerReader, options: PeriodOptions) -> ClosedPeriod:
    if options.period is None:
        raise ConfigError([Problem("", "--preview", "needs a period, such as 2026-10")])
    try:
        window = parse_window(options.period, now_us=reader.state().accounted_us, zone=time_zone(options.time_zone))
    except ValueError as error:
        raise ConfigError([Problem("", "PERIOD", str(error))]) from None
    return draft_period(reader, name=options.period, window=window, zone=options.time_zone)


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
    add("--output", choices=("table", "markdown", "csv", "json"), default="table", help="[default: table]")
    add("--decimals", type=int, choices=range(10), metavar="N", help="of amounts, 0 to 9 [default: 2; csv, json: 6]")


def _dimensions(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if unknown := [name for name in names if name not in INVOICE_DIMENSIONS]:
        raise ArgumentTypeError(f"'{unknown[0]}' is not valid; use {_DIMENSIONS}")
    return names


def _periods(parsed: Namespace) -> int:
    options = PeriodOptions(
        period=parsed.period,
        by=parsed.by,
        preview=parsed.preview,
        time_zone=parsed.time_zone,
        output=parsed.output,
        decimals=parsed.decimals,
    )
    return periods(parsed.ledger, options)
