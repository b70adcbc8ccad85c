"""Opens the ledgers that a command reads, and finds the period and the time zone that its flags choose."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import tzinfo

from msgspec import structs

from gputally.commands.scope_flags import ScopeOptions
from gputally.errors import ConfigError, Problem
from gputally.ledger.joined import JoinedReader
from gputally.ledger.open import reading_once
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import LedgerState, Records, Window
from gputally.output.scope import Scope
from gputally.process.clock import zone_named
from gputally.reports.named_hours import BUSINESS_HOURS
from gputally.reports.query import ReportQuery, unmatched
from gputally.reports.time_dimensions import Calendar
from gputally.reports.windows import instant, parse_window


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
