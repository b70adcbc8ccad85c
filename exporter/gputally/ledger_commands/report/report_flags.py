"""The flags of `gputally report`."""

import argparse
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from gputally.ledger_commands.in_pod import PLUGIN_HELP
from gputally.ledger_commands.ledger_flags import LEDGER
from gputally.report.calendar.named_hours import NamedHours, parse_hours
from gputally.report.focus import VERSIONS
from gputally.report.report_query import COLUMNS, FILTERED, Filter
from gputally.report.shared_capacity import ROWS, SHARINGS
from gputally.setting import add_epilog, add_flags

PRESETS: Final = ("team",)
_COMMA: Final = re.compile(r",(?![^\[]*\])")
"""Separates the values of a filter; a comma in brackets belongs to its value."""

PERIODS: Final = """\
A period is one of
  today, yesterday, week, last-week, month, last-month, year, last-year, all
  12h, 7d, 4w                   the last hours, days or weeks
  2026, 2026-Q4, 2026-10, 2026-10-31   a year, quarter, month or day
  2026-10-01/2026-10-15T06:00   from and to; 2026-10-01/ is up to now
"""
"""What --window accepts, for people."""
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


def add_scope_flags(command: ArgumentParser, *, columns: Sequence[str] = FILTERED, has_history: bool = True) -> None:
    """Add the flags that say what to read, see `ScopeOptions`; filters may name these columns."""
    add = command.add_argument
    if has_history:
        add("--history", metavar="FILE", help="imported jobs, for the time before the accounting start")
    add("--window", metavar="PERIOD", default="month", help="see below [default: month, up to now]")
    cut_off = "what 'now' is: nothing after it counts [default: the last time that the ledger is complete]"
    add("--cut-off", metavar="TIME", help=cut_off)
    add(
        "--where",
        type=partial(_filter, columns=columns),
        metavar="COLUMN=VALUE,...",
        action="append",
        default=[],
        help="only these allocations; a value may have the wildcards * and ?; may be repeated",
    )
    add("--only-tenants", type=_limit, help=argparse.SUPPRESS)  # of the aggregator: all that its user may see
    add("--time-zone", metavar="ZONE", default="UTC", help="of days and months, e.g. Europe/Berlin [default: UTC]")
    add(
        "--hours",
        type=_hours,
        metavar="HOURS",
        action="append",
        default=[],
        help="what the dimension hours means: [NAME=]DAYS FROM-TO; may be repeated [default: business=Mon-Fri 9-17]",
    )


def add_dimensions_flag(
    command: ArgumentParser, *, columns: Collection[str] = tuple(COLUMNS), default: Sequence[str] = ("tenant",)
) -> None:
    """Add --by, with these dimensions."""
    command.add_argument(
        "--by",
        type=partial(_dimensions, known=columns),
        metavar="DIMENSION,...",
        default=tuple(default),
        help=f"what a row stands for: {', '.join(columns)} [default: {','.join(default)}]",
    )


def add_rows_flags(command: ArgumentParser, *, top: str) -> None:
    """Add --top, with this help, and --decimals."""
    command.add_argument("--top", type=_count, metavar="N", help=f"only the N {top}; one row adds up the others")
    help_text = "of amounts, 0 to 9 [default: 2; csv, json: 6]"
    command.add_argument("--decimals", type=int, choices=range(10), metavar="N", help=help_text)


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
    add("--focus-version", choices=VERSIONS, default=VERSIONS[0], help="of the FOCUS columns [default: %(default)s]")


def _dimensions(text: str, *, known: Collection[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if unknown := [name for name in names if name not in known]:
        raise ArgumentTypeError(f"'{unknown[0]}' is not valid; use {', '.join(known)}")
    return names


def _filter(text: str, *, columns: Sequence[str] = FILTERED) -> Filter:
    column, equals, values = text.partition("=")
    if column not in columns or not equals:
        raise ArgumentTypeError(f"'{text}' is not valid; use COLUMN=VALUE with one of {', '.join(columns)}")
    return Filter(column, tuple(_COMMA.split(values)))


def _limit(text: str) -> Filter:
    return Filter("tenant", tuple(_COMMA.split(text)), is_limit=True)


def _hours(text: str) -> NamedHours:
    try:
        return parse_hours(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise ArgumentTypeError(f"'{text}' is not valid; use a number from 1")


def _report(parsed: Namespace) -> int:
    from gputally.ledger_commands.report.report_command import (  # noqa: PLC0415 - other commands have flags from here
        ReportOptions,
        report,
    )
    from gputally.ledger_commands.report.report_scope import ScopeOptions  # noqa: PLC0415 - as above

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
