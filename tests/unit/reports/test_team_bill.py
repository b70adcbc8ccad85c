"""The bill of each team has the same currencies as its jobs."""

from hypothesis import given
from hypothesis import strategies as st

from gputally.model.allocation import State
from gputally.model.price import Price
from gputally.reports.bill import team_bill_of
from gputally.reports.bill_rows import RowChoice, rows_of
from gputally.reports.cells import Cell
from tests.contract.records import PRICE
from tests.unit.reports.cells import Billed, billed
from tests.unit.reports.test_bill import FIELDS, PARTS


def cell(tenant: str, job: str, price: Price | None) -> Cell:
    return Cell(labels=(tenant, "ml", "Job", job), price=price, gpu_time=10**6, state=State.RUNNING)


def test_jobs_without_a_price_are_in_the_currency_of_their_team() -> None:
    bill = team_bill_of([cell("red", "paid", PRICE), cell("blue", "free", None)], [], [])

    assert {line.labels: line.currency for line in bill.teams.lines} == {("red",): "CHF", ("blue",): "CHF"}
    assert {name: [line.currency for line in jobs.lines] for name, jobs in bill.jobs} == {
        "red": ["CHF"],
        "blue": ["CHF"],
    }


@given(billed, st.integers(0, 6), st.none() | st.integers(1, 3))
def test_the_shown_jobs_of_a_team_add_up_to_what_is_shown_for_it(found: Billed, places: int, top: int | None) -> None:
    bill = team_bill_of(found.cells, [], found.usage, lost=found.lost)
    teams = {(row.labels[0], row.currency): row for each in rows_of(bill.teams, RowChoice(places)) for row in each.rows}

    for tenant, jobs in bill.jobs:
        shown = {total.currency: teams[tenant, total.currency] for total in jobs.totals}
        for each in rows_of(jobs, RowChoice(places, top), shown=shown):
            team = teams[tenant, each.total.currency]
            for field in FIELDS:
                if field not in ("unobserved", "share"):
                    assert sum(getattr(row, field) for row in each.rows) == getattr(team, field)
                    assert getattr(each.total, field) == getattr(team, field)
            for part, whole in PARTS.items():
                assert all(getattr(row, part) <= getattr(row, whole) for row in each.rows)
