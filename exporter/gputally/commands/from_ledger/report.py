"""Reports GPU-hours and cost of a period: a bill, a waterfall, a comparison, teams, or FOCUS."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import structs

from gputally.commands.from_ledger.reading import LedgerFiles, accounted, matched, reading_scope, require_time
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.formatting.formats import places
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import IMPORTED
from gputally.model.units import GPU_HOUR
from gputally.output.report import BillReport, ChangeReport, bill_answer, changes_answer, write_focus, write_sampled
from gputally.output.scope import Scope
from gputally.output.team_report import TOP_JOBS, TeamReport, teams_answer
from gputally.output.waterfall import WaterfallReport, waterfall_answer
from gputally.output.writer import write_answer
from gputally.questions.parameter import InvalidQuestion
from gputally.questions.report import PREVIOUS, Report
from gputally.questions.times import period_of
from gputally.reports.bill import TEAM_BY, Bill, add_progress, bill_of, bill_with_unallocated, team_bill_of
from gputally.reports.cells import read_cells, read_job_cells, read_lost, read_unallocated, read_usage
from gputally.reports.cost_change import compare, length_note
from gputally.reports.focus import Account, focus_rows, read_charges
from gputally.reports.query import ReportQuery
from gputally.reports.unbilled import read_sampled, read_unobserved
from gputally.reports.waterfall import ALLOCATED, CAPACITY, read_waterfall_parts, waterfalls_of
from gputally.reports.waterfall_rows import waterfall_rows
from gputally.reports.windows import equal_part, previous

_RARELY: Final = (1_000_000, 1_000, 1_000)
_FOR_PROGRAMS: Final = ("csv", "focus")
"""Formats without room for notes, which go to standard error."""


def _dimensions(question: Report) -> tuple[str, ...]:
    """What a row stands for."""
    if question.preset:
        return TEAM_BY
    return question.by or (() if question.waterfall else ("tenant",))


def report(question: Report, files: LedgerFiles) -> int:
    """Print the report. Raises: LedgerError, and InvalidQuestion for a wrong period or time zone."""
    if question.waterfall and files.history is not None:
        raise InvalidQuestion("waterfall", "cannot be combined with {}; omit one of them", "history")
    what = reading_scope(question, files, by=_dimensions(question), is_snapshot=question.page)
    with ending_at_once(), _collecting_rarely(), ProgressLine() as progress, what as (reader, period):
        progress("reading the ledger ...")
        unaccounted = None if question.filters else reader.unaccounted(period.query.window)
        scope = structs.replace(period, unaccounted=unaccounted)
        if question.page:
            _write_page(reader, scope, question, progress)
        elif question.output == "focus":
            scope = _write_focus(reader, scope, question, progress)
        elif question.compare is not None:
            scope = _write_changes(reader, scope, question, progress)
        else:
            scope = _write_lines(reader, scope, question, progress)
        sys.stdout.flush()
        if question.output in _FOR_PROGRAMS:
            sys.stderr.writelines(f"gputally: {note}\n" for note in scope.warnings)
        if files.history is not None or scope.state.cluster == IMPORTED:
            write_sampled(sys.stderr, read_sampled(reader, scope.query))
    return 0


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Hardly look for garbage in cycles: rows have none, and looking at a million of them takes a third of the time."""
    usual = gc.get_threshold()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _write_page(reader: LedgerReader, scope: Scope, question: Report, progress: ProgressLine) -> None:
    """Print one document with those of all tables, by name."""
    bill = structs.replace(question, compare=None, waterfall=False)
    tables = {"bill": bill, "days": structs.replace(bill, by=("day",))}
    if question.waterfall:
        tables["waterfall"] = structs.replace(question, compare=None, by=None, top=None)
    for place, (name, table) in enumerate(tables.items()):
        sys.stdout.write(f'{"," if place else "{"}"{name}":')
        query = structs.replace(scope.query, by=_dimensions(table))
        _write_lines(reader, structs.replace(scope, query=query), table, progress)
    if question.compare is not None:
        sys.stdout.write(',"change":')
        _write_changes(reader, scope, question, progress)
    sys.stdout.write("}\n")


def _write_changes(reader: LedgerReader, scope: Scope, question: Report, progress: ProgressLine) -> Scope:
    """Print the comparison with an earlier period. Returns: see `_write_lines`."""
    changes = _changes(reader, scope, question)
    scope = matched(reader, scope, is_empty=not changes.changes)
    progress("")
    write_answer(sys.stdout, changes_answer(structs.replace(changes, scope=scope)), output=question.output)
    if (note := length_note(scope.query.window, changes.before)) and question.output in _FOR_PROGRAMS:
        sys.stderr.write(f"gputally: {note}\n")
    return scope


def _write_lines(reader: LedgerReader, scope: Scope, question: Report, progress: ProgressLine) -> Scope:
    """Print a waterfall, a preset or a bill. Returns the scope with the filters that match nothing, if it is empty."""
    if question.waterfall:
        waterfall = _waterfall(reader, scope, question)
        scope = matched(reader, scope, is_empty=not waterfall.found)
        progress("")
        write_answer(sys.stdout, waterfall_answer(structs.replace(waterfall, scope=scope)), output=question.output)
    elif question.preset:
        teams = _teams(reader, scope, question)
        scope = matched(reader, scope, is_empty=not teams.bill.teams.lines)
        progress("")
        write_answer(sys.stdout, teams_answer(structs.replace(teams, scope=scope)), output=question.output)
    else:
        bill = _bill(reader, scope.query, question.unallocated)
        scope = matched(reader, scope, is_empty=not bill.lines)
        progress("")
        found = BillReport(scope=scope, bill=bill, top=question.top, places=places(question.output, question.decimals))
        write_answer(sys.stdout, bill_answer(found), output=question.output)
    return scope


def _waterfall(reader: LedgerReader, scope: Scope, question: Report) -> WaterfallReport:
    """From capacity on, or with filters, from what was allocated on."""
    parts, billed = read_waterfall_parts(reader, scope.query)
    found = waterfalls_of(parts, billed, first=ALLOCATED if scope.query.filters else CAPACITY, top=question.top)
    return WaterfallReport(scope=scope, found=waterfall_rows(found, places(question.output, question.decimals)))


def _teams(reader: LedgerReader, scope: Scope, question: Report) -> TeamReport:
    cells, jobs = read_cells(reader, scope.query)
    unobserved = read_unobserved(reader, scope.query)
    bill = team_bill_of(
        cells, jobs, read_usage(reader, scope.query), lost=read_lost(reader, scope.query), unobserved=unobserved
    )
    return TeamReport(
        scope=scope, bill=bill, top=question.top or TOP_JOBS, places=places(question.output, question.decimals)
    )


def _bill(reader: LedgerReader, query: ReportQuery, sharing: str | None) -> Bill:
    parts = (*read_cells(reader, query), read_usage(reader, query))
    lost, unobserved = read_lost(reader, query), read_unobserved(reader, query)
    if sharing is None:
        found = bill_of(*parts, lost=lost, unobserved=unobserved)
    else:
        free = read_unallocated(reader, query)
        found = bill_with_unallocated(parts, free, query, sharing=sharing, lost=lost, unobserved=unobserved)
    add_progress(found, query, reader.progress)
    return found


def _write_focus(reader: LedgerReader, scope: Scope, question: Report, progress: ProgressLine) -> Scope:
    """Print the charges; what has no price is no charge, and is reported on standard error.

    Returns: see `_write_lines`.
    """
    account = Account(scope.state.cluster or "unknown", scope.query.calendar.zone, question.focus_version)
    count = write_focus(sys.stdout, focus_rows(read_charges(reader, scope.query), account))
    [*totals] = bill_of(*read_cells(reader, scope.query)).totals
    unpriced = sum(total.unpriced for total in totals)
    progress("")
    if unpriced or not count:
        hours = f"{unpriced / GPU_HOUR:,.2f} GPU-hours without a price are not in the file"
        sys.stderr.write(f"gputally: {count:,} charges; {hours}\n")
    return matched(reader, scope, is_empty=not count and not unpriced)


def _changes(reader: LedgerReader, scope: Scope, question: Report) -> ChangeReport:
    """The comparison with the earlier period that the question names."""
    name, state, zone = question.compare or "", scope.state, scope.query.calendar.zone
    asked = period_of(question.window, "window", now_us=state.accounted_us, zone=zone)
    if name == PREVIOUS:
        earlier = previous(asked, zone=zone)
    else:
        earlier = period_of(name, "compare", now_us=state.accounted_us, zone=zone)
    part = equal_part(earlier, of=asked, until_us=state.accounted_us)
    before = structs.replace(scope.query, window=accounted(part, state))
    require_time(before.window, name, "compare", scope)
    changes = compare(read_job_cells(reader, before), read_job_cells(reader, scope.query))
    return ChangeReport(
        scope=scope,
        before=before.window,
        changes=changes,
        top=question.top,
        places=places(question.output, question.decimals),
    )
