"""The flags that say what a command reads of which ledger: period, filters, dimensions, time zone and hours."""

import argparse
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Collection, Sequence
from functools import partial
from typing import Final, Self

from msgspec import Struct

from gputally.commands.output_flags import add_decimals_flag
from gputally.reports.choices import COLUMNS, FILTERED, Filter
from gputally.reports.named_hours import NamedHours, parse_hours

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
    add_decimals_flag(command)


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


class ScopeOptions(Struct, frozen=True, kw_only=True):
    """The flags that say what to read. Nothing after the `cut_off` counts, by default the end of the ledger."""

    ledger: str
    history: str | None
    window: str
    cut_off: str | None
    filters: tuple[Filter, ...]
    time_zone: str
    hours: tuple[NamedHours, ...]

    @classmethod
    def of(cls, parsed: Namespace) -> Self:
        """The scope that the command line chooses."""
        limit = (parsed.only_tenants,) if parsed.only_tenants else ()
        filters, hours = (*parsed.where, *limit), tuple(parsed.hours)
        names = ("ledger", "history", "window", "cut_off", "time_zone")
        return cls(**{name: getattr(parsed, name) for name in names}, filters=filters, hours=hours)
