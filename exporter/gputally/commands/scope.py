"""What a command reads of which ledger: the period, filters, dimensions and time zone that its flags name."""

import argparse
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import tzinfo
from functools import partial
from typing import Final, Self

from msgspec import Struct, structs

from gputally.errors import ConfigError, Problem
from gputally.ledger.joined import JoinedReader
from gputally.ledger.open import reading_once
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import LedgerState, Records, Window
from gputally.output.scope import Scope
from gputally.process.clock import zone_named
from gputally.reports.query import COLUMNS, FILTERED, Filter, ReportQuery, unmatched
from gputally.reports.time_dimensions import BUSINESS_HOURS, Calendar, NamedHours, parse_hours
from gputally.reports.windows import instant, parse_window

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
    help_text = "of amounts, 0 to 9 [default: 2; csv, json: 6]"
    command.add_argument("--decimals", type=int, choices=range(10), metavar="N", help=help_text)


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


@contextmanager
def _reading(ledger: str, history: str | None, *, is_snapshot: bool) -> Iterator[LedgerReader]:
    """A reader of the ledger, and of the imported history before it. Raises: LedgerError."""
    with ExitStack() as open_files:
        live = open_files.enter_context(reading_once(ledger, is_snapshot=is_snapshot))
        yield (
            live
            if history is None
            else JoinedReader(history=open_files.enter_context(reading_once(history)), live=live)
        )


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


@contextmanager
def reading_scope(
    options: ScopeOptions,
    *,
    by: tuple[str, ...] = (),
    records: Records = Records.ALLOCATIONS,
    is_snapshot: bool = False,
) -> Iterator[tuple[LedgerReader, Scope]]:
    """A reader, which may be a snapshot, and the part of the period that is accounted at the cut-off, of `records`.

    Raises: LedgerError, and ConfigError for a wrong or empty period, a wrong cut-off or a wrong zone.
    """
    calendar = Calendar(time_zone(options.time_zone), options.hours or BUSINESS_HOURS)
    with _reading(options.ledger, options.history, is_snapshot=is_snapshot) as reader:
        state = _cut_off(reader.state(), options.cut_off, calendar.zone)
        asked = window_of(options.window, state, calendar.zone)
        window = accounted(asked, state)
        query = ReportQuery(window=window, by=by, filters=options.filters, calendar=calendar)
        from_us, begin_us = state.records_from_us(records), asked.start_us or window.start_us  # `all` begins at 0
        is_known = from_us is not None and from_us <= begin_us
        scope = Scope(query=query, state=state, records=records, is_known=is_known)
        require_time(window, options.window, "window", scope)
        yield reader, scope


def matched(reader: LedgerReader, scope: Scope, *, is_empty: bool) -> Scope:
    """The scope of an answer; if that is empty, with the values of filters that no record has. Raises: LedgerError."""
    return structs.replace(scope, unmatched=unmatched(reader, scope.query)) if is_empty else scope


def time_zone(name: str) -> tzinfo:
    """The zone of the flag --time-zone. Raises: ConfigError."""
    try:
        return zone_named(name)
    except ValueError as error:
        raise ConfigError([Problem("", "--time-zone", str(error))]) from None


def _cut_off(state: LedgerState, text: str | None, zone: tzinfo) -> LedgerState:
    """The ledger as if it were complete only up to the time of the flag --cut-off. Raises: ConfigError."""
    if text is None:
        return state
    try:
        cut_off_us = instant(text, zone)
    except ValueError:
        problem = f"'{text}' is not a time; use one such as 2026-10-15T06:00 or 2026-10-15T06:00:00Z"
        raise ConfigError([Problem("", "--cut-off", problem)]) from None
    if not state.accounting_start_us <= cut_off_us <= state.accounted_us:
        accounts = Scope(query=ReportQuery(window=Window(0, 0), by=(), calendar=Calendar(zone)), state=state).accounted
        raise ConfigError([Problem("", "--cut-off", f"{accounts}, not '{text}'; choose a time within that")])
    return structs.replace(state, accounted_us=cut_off_us)


def window_of(text: str, state: LedgerState, zone: tzinfo, *, flag: str = "window") -> Window:
    """The period of a flag. Raises: ConfigError."""
    try:
        return parse_window(text, now_us=state.accounted_us, zone=zone)
    except ValueError as error:
        raise ConfigError([Problem("", f"--{flag}", str(error))]) from None


def accounted(window: Window, state: LedgerState) -> Window:
    """The accounted part of the window."""
    return Window(max(window.start_us, state.accounting_start_us), min(window.end_us, state.accounted_us))


def require_time(window: Window, text: str, flag: str, scope: Scope) -> None:
    """Raises: ConfigError if the accounted part of a period is empty."""
    if window.start_us >= window.end_us:
        problem = f"nothing is accounted in '{text}': {scope.accounted}; choose a period within that time"
        raise ConfigError([Problem("", f"--{flag}", problem)])
