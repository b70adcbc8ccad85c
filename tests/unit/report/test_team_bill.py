"""The bill of each team has the same currencies as its jobs."""

from gputally.model.allocation import State
from gputally.model.price import Price
from gputally.report.cells import Cell
from gputally.report.team_bill import team_bill_of
from tests.contract.records import PRICE


def cell(tenant: str, job: str, price: Price | None) -> Cell:
    return Cell(labels=(tenant, "ml", "Job", job), price=price, gpu_time=10**6, state=State.RUNNING)


def test_jobs_without_a_price_are_in_the_currency_of_their_team() -> None:
    bill = team_bill_of([cell("red", "paid", PRICE), cell("blue", "free", None)], [], [])

    assert {line.labels: line.currency for line in bill.teams.lines} == {("red",): "CHF", ("blue",): "CHF"}
    assert {name: [line.currency for line in jobs.lines] for name, jobs in bill.jobs} == {
        "red": ["CHF"],
        "blue": ["CHF"],
    }
