"""Opens the ledgers that a command reads, and finds the period and the time zone that its flags choose."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import tzinfo
from typing import NamedTuple

from msgspec import structs

from gputally.ledger.joined import JoinedReader
from gputally.ledger.open import reading_once
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import LedgerState, Records, Window
from gputally.output.scope import Scope
from gputally.process.clock import zone_named
from gputally.questions.ledger_question import LedgerQuestion
from gputally.questions.parameter import InvalidQuestion
from gputally.questions.times import cut_off_us, period_of, zone_of
from gputally.reports.named_hours import BUSINESS_HOURS
from gputally.reports.query import ReportQuery, unmatched
from gputally.reports.time_dimensions import Calendar


class LedgerFiles(NamedTuple):
    """The ledger to read, and that of imported jobs for the time before it."""

    ledger: str
    history: str | None = None


@contextmanager
def _reading(files: LedgerFiles, *, is_snapshot: bool) -> Iterator[LedgerReader]:
    """A reader of the ledger, and of the imported history before it. Raises: LedgerError."""
    with ExitStack() as opened:
        live = opened.enter_context(reading_once(files.ledger, is_snapshot=is_snapshot))
        yield (
            live
            if files.history is None
            else JoinedReader(history=opened.enter_context(reading_once(files.history)), live=live)
        )


@contextmanager
def reading_scope(
    question: LedgerQuestion,
    files: LedgerFiles,
    *,
    by: tuple[str, ...] = (),
    records: Records = Records.ALLOCATIONS,
    is_snapshot: bool = False,
) -> Iterator[tuple[LedgerReader, Scope]]:
    """A reader, which may be a snapshot, and the part of the period that is accounted at the cut-off, of `records`.

    Raises: LedgerError, and InvalidQuestion for a wrong or empty period, a wrong cut-off or a wrong zone.
    """
    calendar = Calendar(time_zone(question.time_zone), question.hours or BUSINESS_HOURS)
    with _reading(files, is_snapshot=is_snapshot) as reader:
        state = _cut_off(reader.state(), question.cut_off, calendar.zone)
        asked = period_of(question.window, "window", now_us=state.accounted_us, zone=calendar.zone)
        window = accounted(asked, state)
        query = ReportQuery(window=window, by=by, filters=question.filters, calendar=calendar)
        from_us, begin_us = state.records_from_us(records), asked.start_us or window.start_us  # `all` begins at 0
        is_known = from_us is not None and from_us <= begin_us
        scope = Scope(query=query, state=state, records=records, is_known=is_known)
        require_time(window, question.window, "window", scope)
        yield reader, scope


def matched(reader: LedgerReader, scope: Scope, *, is_empty: bool) -> Scope:
    """The scope of an answer; if that is empty, with the values of filters that no record has. Raises: LedgerError."""
    return structs.replace(scope, unmatched=unmatched(reader, scope.query)) if is_empty else scope


def time_zone(name: str) -> tzinfo:
    """The zone of the flag --time-zone. Raises: InvalidQuestion."""
    return zone_of(name, zone_named)


def _cut_off(state: LedgerState, text: str | None, zone: tzinfo) -> LedgerState:
    """The ledger as if it were complete only up to the cut-off of the question. Raises: InvalidQuestion."""
    if text is None:
        return state
    found_us = cut_off_us(text, zone)
    if not state.accounting_start_us <= found_us <= state.accounted_us:
        accounts = Scope(query=ReportQuery(window=Window(0, 0), by=(), calendar=Calendar(zone)), state=state).accounted
        raise InvalidQuestion("cut_off", f"{accounts}, not '{text}'; choose a time within that")
    return structs.replace(state, accounted_us=found_us)


def accounted(window: Window, state: LedgerState) -> Window:
    """The accounted part of the window."""
    return Window(max(window.start_us, state.accounting_start_us), min(window.end_us, state.accounted_us))


def require_time(window: Window, text: str, parameter: str, scope: Scope) -> None:
    """Raises: InvalidQuestion if the accounted part of the period of a parameter is empty."""
    if window.start_us >= window.end_us:
        problem = f"nothing is accounted in '{text}': {scope.accounted}; choose a period within that time"
        raise InvalidQuestion(parameter, problem)
