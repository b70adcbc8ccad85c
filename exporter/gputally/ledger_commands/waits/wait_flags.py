"""The flags of `gputally waits`."""

from argparse import ArgumentParser, Namespace
from typing import Final

from gputally.ledger_commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.ledger_commands.report.report_scope import ScopeOptions
from gputally.ledger_commands.report.scope_flags import (
    PERIODS,
    add_dimensions_flag,
    add_rows_flags,
    add_scope_flags,
)
from gputally.ledger_commands.waits.waits_command import WaitOptions, report_waits
from gputally.model.waits import WaitCause
from gputally.reports.waits import COLUMNS, FILTERED
from gputally.setting import add_epilog, add_flags

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
