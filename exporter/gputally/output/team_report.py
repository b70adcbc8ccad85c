"""The report of teams: their totals, and the most expensive jobs of each."""

from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from msgspec import Struct

from gputally.formatting.html_pages import HtmlTable, tables_page
from gputally.formatting.tables import title, write_rows, write_table
from gputally.output.report import (
    EMPTY,
    MEASURES,
    amounts,
    bill_table,
    documents,
    notes_of,
    row_values,
    write_heading,
    write_json,
)
from gputally.output.scope import Scope, write_notes
from gputally.reports.bill import TeamBill
from gputally.reports.bill_rows import BillRows, RowChoice, rows_of
from gputally.reports.choices import COLUMNS

TOP_JOBS: Final = 5
_TEAM: Final = COLUMNS["tenant"]
_JOB: Final = COLUMNS["job"]


class TeamReport(Struct, frozen=True, kw_only=True):
    """A bill of teams to print, amounts with `places` decimals; of each team the `top` jobs, the others added up."""

    scope: Scope
    bill: TeamBill
    top: int
    places: int


def write_teams(file: TextIO, report: TeamReport, *, output: str) -> None:
    """Write the report. CSV has one row for each job shown, and no totals, so that its columns can be summed."""
    teams = rows_of(report.bill.teams, RowChoice(report.places))
    if output == "json":
        rows, jobs = documents(_TEAM, teams), dict(_by_team(report, teams))
        for row in rows:
            found = jobs[row["tenant"]]
            row["top_jobs"] = [each for each in documents(_JOB, found) if each["currency"] == row["currency"]]
        write_json(file, report.scope, rows=rows, totals=[row_values(each.total) for each in teams])
    elif output == "csv":
        cells = (
            (tenant, *row.labels, *amounts(row, MEASURES), row.currency)
            for tenant, found in _by_team(report, teams)
            for each in found
            for row in each.rows
        )
        write_rows(file, (*_TEAM, *_JOB, *MEASURES, "currency"), cells, output="csv")
    elif output == "html":
        about = f"From {report.scope.about}"
        tables = _html_tables(report, teams)
        file.write(tables_page(title="GPU cost of teams", about=about, tables=tables, notes=report.scope.notes))
    else:
        write_heading(file, report.scope.about, output)
        for each in teams or EMPTY:
            write_table(file, *bill_table(_TEAM, each, bars=output == "table"), output=output)
            file.writelines(f"\n{note}\n" for note in notes_of(each.total, report.scope))
        for tenant, found in _by_team(report, teams):
            file.write(f"\n{title(_title(tenant, report.top), output)}\n\n")
            for each in found:
                write_table(file, *bill_table(_JOB, each, bars=output == "table"), output=output)
        write_notes(file, report.scope)


def _title(tenant: str, top: int) -> str:
    return f"{tenant}: top {top} jobs by cost"


def _by_team(report: TeamReport, teams: Sequence[BillRows]) -> Iterator[tuple[str, Sequence[BillRows]]]:
    """The jobs of each team, which add up to what is shown for it."""
    rows = {(row.labels, row.currency): row for each in teams for row in each.rows}
    for tenant, bill in report.bill.jobs:
        shown = {total.currency: rows[(tenant,), total.currency] for total in bill.totals}
        yield tenant, rows_of(bill, RowChoice(report.places, report.top), shown=shown)


def _html_tables(report: TeamReport, teams: Sequence[BillRows]) -> Iterator[HtmlTable]:
    for each in teams or EMPTY:
        note = " ".join(notes_of(each.total, report.scope))
        yield HtmlTable(*bill_table(_TEAM, each, bars=False), [row.share for row in each.rows], note=note)
    for tenant, found in _by_team(report, teams):
        for each in found:
            shares = [row.share for row in each.rows]
            yield HtmlTable(*bill_table(_JOB, each, bars=False), shares, caption=_title(tenant, report.top))
