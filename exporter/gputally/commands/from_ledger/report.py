"""Reports GPU-hours and cost of a period: a bill, a waterfall, a comparison, teams, or FOCUS."""

import sys
from typing import Final

from msgspec import Struct, structs

from gputally.commands.from_ledger.reading import accounted, matched, reading_scope, require_time, window_of
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.commands.scope_flags import ScopeOptions
from gputally.errors import ConfigError, Problem
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import IMPORTED
from gputally.model.units import GPU_HOUR
from gputally.output.answer import PLACES
from gputally.output.report import BillReport, ChangeReport, bill_answer, changes_answer, write_focus, write_sampled
from gputally.output.scope import Scope
from gputally.output.team_report import TOP_JOBS, TeamReport, teams_answer
from gputally.output.waterfall import WaterfallReport, waterfall_answer
from gputally.output.writer import write_answer
from gputally.reports.bill import OF_CAPACITY, TEAM_BY, Bill, add_progress, bill_of, bill_with_unallocated, team_bill_of
from gputally.reports.cells import read_cells, read_job_cells, read_lost, read_unallocated, read_usage
from gputally.reports.choices import EVEN, RECURRING, TIME_DIMENSIONS, WEIGHTED
from gputally.reports.cost_change import compare, length_note
from gputally.reports.focus import Account, focus_rows, read_charges
from gputally.reports.query import ReportQuery
from gputally.reports.unbilled import read_sampled, read_unobserved
from gputally.reports.waterfall import ALLOCATED, CAPACITY, read_waterfall_parts, waterfalls_of
from gputally.reports.waterfall_rows import waterfall_rows
from gputally.reports.windows import equal_part, previous

_FOR_PROGRAMS: Final = ("csv", "focus")
"""Formats without room for notes, which go to standard error."""


class ReportOptions(Struct, frozen=True, kw_only=True):
    """The flags of the command. A `page` has all tables that they name, and the days, of one moment of the ledger."""

    scope: ScopeOptions
    by: tuple[str, ...] | None
    preset: str | None
    compare: str | None
    top: int | None
    unallocated: str | None
    waterfall: bool
    page: bool
    output: str
    decimals: int | None
    focus_version: str

    @property
    def dimensions(self) -> tuple[str, ...]:
        """What a row stands for."""
        if self.preset:
            return TEAM_BY
        return self.by or (() if self.waterfall else ("tenant",))

    @property
    def places(self) -> int:
        """The decimals of amounts."""
        return PLACES[self.output] if self.decimals is None else self.decimals


def report(options: ReportOptions) -> int:
    """Print the report. Raises: LedgerError, and ConfigError for a wrong period, time zone or combination of flags."""
    _refuse_combinations(options)
    what = reading_scope(options.scope, by=options.dimensions, is_snapshot=options.page)
    with ending_at_once(), ProgressLine() as progress, what as (reader, period):
        progress("reading the ledger ...")
        unaccounted = None if options.scope.filters else reader.unaccounted(period.query.window)
        scope = structs.replace(period, unaccounted=unaccounted)
        if options.page:
            _write_page(reader, scope, options, progress)
        elif options.output == "focus":
            scope = _write_focus(reader, scope, options, progress)
        elif options.compare is not None:
            scope = _write_changes(reader, scope, options, progress)
        else:
            scope = _write_lines(reader, scope, options, progress)
        sys.stdout.flush()
        if options.output in _FOR_PROGRAMS:
            sys.stderr.writelines(f"gputally: {note}\n" for note in scope.warnings)
        if options.scope.history is not None or scope.state.cluster == IMPORTED:
            write_sampled(sys.stderr, read_sampled(reader, scope.query))
    return 0


def _write_page(reader: LedgerReader, scope: Scope, options: ReportOptions, progress: ProgressLine) -> None:
    """Print one document with those of all tables, by name."""
    bill = structs.replace(options, compare=None, waterfall=False)
    tables = {"bill": bill, "days": structs.replace(bill, by=("day",))}
    if options.waterfall:
        tables["waterfall"] = structs.replace(options, compare=None, by=None, top=None)
    for place, (name, table) in enumerate(tables.items()):
        sys.stdout.write(f'{"," if place else "{"}"{name}":')
        query = structs.replace(scope.query, by=table.dimensions)
        _write_lines(reader, structs.replace(scope, query=query), table, progress)
    if options.compare is not None:
        sys.stdout.write(',"change":')
        _write_changes(reader, scope, options, progress)
    sys.stdout.write("}\n")


def _write_changes(reader: LedgerReader, scope: Scope, options: ReportOptions, progress: ProgressLine) -> Scope:
    """Print the comparison with an earlier period. Returns: see `_write_lines`."""
    changes = _changes(reader, scope, options)
    scope = matched(reader, scope, is_empty=not changes.changes)
    progress("")
    write_answer(sys.stdout, changes_answer(structs.replace(changes, scope=scope)), output=options.output)
    if (note := length_note(scope.query.window, changes.before)) and options.output in _FOR_PROGRAMS:
        sys.stderr.write(f"gputally: {note}\n")
    return scope


def _write_lines(reader: LedgerReader, scope: Scope, options: ReportOptions, progress: ProgressLine) -> Scope:
    """Print a waterfall, a preset or a bill. Returns the scope with the filters that match nothing, if it is empty."""
    if options.waterfall:
        waterfall = _waterfall(reader, scope, options)
        scope = matched(reader, scope, is_empty=not waterfall.found)
        progress("")
        write_answer(sys.stdout, waterfall_answer(structs.replace(waterfall, scope=scope)), output=options.output)
    elif options.preset:
        teams = _teams(reader, scope, options)
        scope = matched(reader, scope, is_empty=not teams.bill.teams.lines)
        progress("")
        write_answer(sys.stdout, teams_answer(structs.replace(teams, scope=scope)), output=options.output)
    else:
        bill = _bill(reader, scope.query, options.unallocated)
        scope = matched(reader, scope, is_empty=not bill.lines)
        progress("")
        found = BillReport(scope=scope, bill=bill, top=options.top, places=options.places)
        write_answer(sys.stdout, bill_answer(found), output=options.output)
    return scope


def _refuse_combinations(options: ReportOptions) -> None:
    """Raises: ConfigError for flags that exclude each other."""
    if options.page:
        return
    chosen = [
        *(["--waterfall"] if options.waterfall else []),
        *(["--history"] if options.waterfall and options.scope.history else []),
        *(["--preset"] if options.preset else []),
        *(["--by"] if options.preset and options.by is not None else []),
        *(["--unallocated"] if options.unallocated else []),
        *(["--compare"] if options.compare is not None else []),
        *(["--output focus"] if options.output == "focus" else []),
    ]
    if len(chosen) > 1:
        raise ConfigError([Problem("", chosen[0], f"cannot be combined with {chosen[1]}; omit one of them")])
    if options.unallocated in (EVEN, WEIGHTED) and (
        others := [each.column for each in options.scope.filters if each.column not in OF_CAPACITY]
    ):
        problem = f"{options.unallocated} cannot be combined with --where {others[0]}: it shares among all; omit one"
        raise ConfigError([Problem("", "--unallocated", problem)])
    if options.waterfall and (times := [each for each in options.by or () if each in TIME_DIMENSIONS]):
        problem = f"cannot be divided by {times[0]}; choose the period with --window, or hours with --where"
        raise ConfigError([Problem("", "--waterfall", problem)])


def _waterfall(reader: LedgerReader, scope: Scope, options: ReportOptions) -> WaterfallReport:
    """From capacity on, or with filters, from what was allocated on."""
    parts, billed = read_waterfall_parts(reader, scope.query)
    found = waterfalls_of(parts, billed, first=ALLOCATED if scope.query.filters else CAPACITY, top=options.top)
    return WaterfallReport(scope=scope, found=waterfall_rows(found, options.places))


def _teams(reader: LedgerReader, scope: Scope, options: ReportOptions) -> TeamReport:
    cells, jobs = read_cells(reader, scope.query)
    unobserved = read_unobserved(reader, scope.query)
    bill = team_bill_of(
        cells, jobs, read_usage(reader, scope.query), lost=read_lost(reader, scope.query), unobserved=unobserved
    )
    return TeamReport(scope=scope, bill=bill, top=options.top or TOP_JOBS, places=options.places)


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


def _write_focus(reader: LedgerReader, scope: Scope, options: ReportOptions, progress: ProgressLine) -> Scope:
    """Print the charges; what has no price is no charge, and is reported on standard error.

    Returns: see `_write_lines`.
    """
    account = Account(scope.state.cluster or "unknown", scope.query.calendar.zone, options.focus_version)
    count = write_focus(sys.stdout, focus_rows(read_charges(reader, scope.query), account))
    [*totals] = bill_of(*read_cells(reader, scope.query)).totals
    unpriced = sum(total.unpriced for total in totals)
    progress("")
    if unpriced or not count:
        hours = f"{unpriced / GPU_HOUR:,.2f} GPU-hours without a price are not in the file"
        sys.stderr.write(f"gputally: {count:,} charges; {hours}\n")
    return matched(reader, scope, is_empty=not count and not unpriced)


def _changes(reader: LedgerReader, scope: Scope, options: ReportOptions) -> ChangeReport:
    """The comparison with the earlier period that the options name."""
    name, state, zone = options.compare or "", scope.state, scope.query.calendar.zone
    asked = window_of(options.scope.window, state, zone)
    if single := [each for each in scope.query.times if each not in RECURRING]:
        problem = f"by {single[0]}, two periods have no rows in common; use {', '.join(RECURRING)}, or no time"
        raise ConfigError([Problem("", "--compare", problem)])
    earlier = previous(asked, zone=zone) if name == "previous" else window_of(name, state, zone, flag="compare")
    part = equal_part(earlier, of=asked, until_us=state.accounted_us)
    before = structs.replace(scope.query, window=accounted(part, state))
    require_time(before.window, name, "compare", scope)
    changes = compare(read_job_cells(reader, before), read_job_cells(reader, scope.query))
    return ChangeReport(scope=scope, before=before.window, changes=changes, top=options.top, places=options.places)
