"""`gputally waits` reports how long pods waited for GPUs in a period."""

from argparse import ArgumentParser, Namespace
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.output_flags import add_output_flag
from gputally.commands.scope_flags import PERIODS, ScopeOptions, add_dimensions_flag, add_rows_flags, add_scope_flags
from gputally.model.waits import WaitCause
from gputally.process.settings import add_epilog, add_flags
from gputally.reports.choices import WAIT_COLUMNS, WAIT_FILTERED

BY: Final = ("tenant", "cause", "occupying_tier")


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
    add_scope_flags(command, columns=WAIT_FILTERED, has_history=False)
    add_dimensions_flag(command, columns=WAIT_COLUMNS, default=BY)
    add = command.add_argument
    add("--tiers-only", action="store_true", help="of other tenants that hold GPUs show only the tier")
    add_output_flag(command)
    add_rows_flags(command, top="rows with the highest cost")


def _waits(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.waits import WaitOptions, report_waits  # noqa: PLC0415 - for --help the flags suffice

    options = WaitOptions(
        scope=ScopeOptions.of(parsed),
        by=parsed.by,
        tiers_only=parsed.tiers_only,
        top=parsed.top,
        decimals=parsed.decimals,
        output=parsed.output,
    )
    return report_waits(options)
