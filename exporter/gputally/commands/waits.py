"""`gputally waits` reports how long pods waited for GPUs in a period."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Final

from msgspec import Struct

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.commands.scope import (
    PERIODS,
    ScopeOptions,
    add_dimensions_flag,
    add_rows_flags,
    add_scope_flags,
    matched,
    reading_scope,
)
from gputally.ledger.records import Records
from gputally.model.waits import WaitCause
from gputally.output.scope import PLACES
from gputally.output.waits import WaitReport, write_waits
from gputally.process.settings import add_epilog, add_flags
from gputally.reports.time_dimensions import TIME_DIMENSIONS
from gputally.reports.waits import COLUMNS, FILTERED, WaitQuery, read_waits, wait_rows


class WaitOptions(Struct, frozen=True, kw_only=True):
    """The flags of the command."""

    scope: ScopeOptions
    by: tuple[str, ...]
    tiers_only: bool
    top: int | None
    decimals: int | None
    output: str

    @property
    def places(self) -> int:
        """The decimals of amounts."""
        return PLACES[self.output] if self.decimals is None else self.decimals


def report_waits(options: WaitOptions) -> int:
    """Print them. Raises: LedgerError, and ConfigError for a wrong period or time zone."""
    reading = reading_scope(options.scope, records=Records.WAITS)
    with ending_at_once(), ProgressLine() as progress, reading as (reader, period):
        progress("reading the ledger ...")
        query = WaitQuery(period.query, options.by, options.tiers_only)
        times = [place for place, column in enumerate(query.columns) if column in TIME_DIMENSIONS]
        found = [
            rows
            for each in read_waits(reader, query)
            for rows in wait_rows(each, places=options.places, top=options.top, time_columns=times)
        ]
        scope = matched(reader, period, is_empty=not found)
        progress("")
        write_waits(sys.stdout, WaitReport(scope=scope, query=query, found=found), output=options.output)
        sys.stdout.flush()
        if options.output == "csv":
            sys.stderr.writelines(f"gputally: {note}\n" for note in scope.warnings)
    return 0


BY: Final = ("tenant", "cause", "occupying_tier")
FORMATS: Final = ("table", "markdown", "html", "csv", "json")
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
    command.set_defaults(run=_waits, history=None)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER,))
    add_scope_flags(command, columns=FILTERED, has_history=False)
    add_dimensions_flag(command, columns=COLUMNS, default=BY)
    add = command.add_argument
    add("--tiers-only", action="store_true", help="of other tenants that hold GPUs show only the tier")
    add("--output", choices=FORMATS, default="table", help="[default: table]")
    add_rows_flags(command, top="rows with the highest cost")


def _waits(parsed: Namespace) -> int:
    options = WaitOptions(
        scope=ScopeOptions.of(parsed),
        by=parsed.by,
        tiers_only=parsed.tiers_only,
        top=parsed.top,
        decimals=parsed.decimals,
        output=parsed.output,
    )
    return report_waits(options)
