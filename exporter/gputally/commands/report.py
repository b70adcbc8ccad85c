"""`gputally report` reports GPU-hours and cost of a period."""

import argparse
from argparse import ArgumentParser, Namespace
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.scope_flags import PERIODS, ScopeOptions, add_dimensions_flag, add_rows_flags, add_scope_flags
from gputally.process.settings import add_epilog, add_flags
from gputally.reports.choices import FOCUS_VERSIONS, ROWS, SHARINGS

PRESETS: Final = ("team",)

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
    add_scope_flags(command)
    add_dimensions_flag(command)
    command.set_defaults(by=None)  # a waterfall is not divided by default, and a preset has its own rows
    _add_content_flags(command)
    _add_output_flags(command)


def _add_content_flags(command: ArgumentParser) -> None:
    add = command.add_argument
    add("--compare", metavar="PERIOD", help="explain the change since this period; 'previous' is the one before")
    add(
        "--unallocated",
        choices=SHARINGS,
        nargs="?",
        const=ROWS,
        help="add the cost of capacity that nobody held: as rows of its own, or shared among the others, the same for "
        "all (even) or in proportion to their cost (weighted)",
    )
    add(
        "--waterfall",
        action="store_true",
        help="from capacity to what was used in jobs that succeeded, with the cause of each loss, at capacity prices",
    )
    add(
        "--preset",
        choices=PRESETS,
        help="a ready report. team: GPU-hours, cost, utilisation and number of jobs of each tenant, with its five most "
        "expensive jobs",
    )


def _add_output_flags(command: ArgumentParser) -> None:
    add = command.add_argument
    add("--page", action="store_true", help=argparse.SUPPRESS)  # of the aggregator: all tables of the page /report
    add(
        "--output",
        choices=("table", "markdown", "html", "csv", "json", "focus"),
        default="table",
        help="focus: charges by hour and pod for FinOps tools, whatever --by says [default: table]",
    )
    add_rows_flags(command, top="rows with the highest cost, or the largest change")
    add(
        "--focus-version",
        choices=FOCUS_VERSIONS,
        default=FOCUS_VERSIONS[0],
        help="of the FOCUS columns [default: %(default)s]",
    )


def _report(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.report import ReportOptions, report  # noqa: PLC0415 - for --help the flags suffice

    options = ReportOptions(
        scope=ScopeOptions.of(parsed),
        by=parsed.by,
        preset=parsed.preset,
        compare=parsed.compare,
        top=parsed.top,
        unallocated=parsed.unallocated,
        waterfall=parsed.waterfall,
        page=parsed.page,
        output=parsed.output,
        decimals=parsed.decimals,
        focus_version=parsed.focus_version,
    )
    return report(options)
