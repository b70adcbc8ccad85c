"""The report of teams: their totals, and the most expensive jobs of each."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from gputally.output.answer import Answer, Section
from gputally.output.report import EMPTY, MEASURES, amounts, bill_section, document_of, documents, notes_of, row_values
from gputally.output.scope import Scope
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


def teams_answer(report: TeamReport) -> Answer:
    """The table of teams, then those of their jobs; CSV has one row for each job shown."""
    teams, scope = rows_of(report.bill.teams, RowChoice(report.places)), report.scope
    return Answer(
        title="GPU cost of teams",
        about=f"From {scope.about}",
        heading=f"GPU cost from {scope.about}",
        sections=_sections(report, teams),
        notes=scope.notes,
        columns=(*_TEAM, *_JOB, *MEASURES, "currency"),
        records=(
            (tenant, *row.labels, *amounts(row, MEASURES), row.currency)
            for tenant, found in _by_team(report, teams)
            for each in found
            for row in each.rows
        ),
        document=lambda: _document(report, teams),
    )


def _document(report: TeamReport, teams: Sequence[BillRows]) -> dict[str, Any]:
    rows, jobs = [structs.asdict(row) for row in documents(_TEAM, teams)], dict(_by_team(report, teams))
    for row in rows:
        own = [each for each in jobs[row["tenant"]] if each.total.currency == row["currency"]]
        row["top_jobs"] = documents(_JOB, own)
    return document_of(report.scope, rows=rows, totals=[row_values(each.total) for each in teams])


def _sections(report: TeamReport, teams: Sequence[BillRows]) -> Iterator[Section]:
    for each in teams or EMPTY:
        yield structs.replace(bill_section(_TEAM, each), notes=[*notes_of(each.total, report.scope)])
    for tenant, found in _by_team(report, teams):
        for each in found:
            yield structs.replace(bill_section(_JOB, each), title=f"{tenant}: top {report.top} jobs by cost")


def _by_team(report: TeamReport, teams: Sequence[BillRows]) -> Iterator[tuple[str, Sequence[BillRows]]]:
    """The jobs of each team, which add up to what is shown for it."""
    rows = {(row.labels, row.currency): row for each in teams for row in each.rows}
    for tenant, bill in report.bill.jobs:
        shown = {total.currency: rows[(tenant,), total.currency] for total in bill.totals}
        yield tenant, rows_of(bill, RowChoice(report.places, report.top), shown=shown)
