"""The cost of unallocated capacity is shared exactly, among the rows that it may belong to."""

from hypothesis import given
from hypothesis import strategies as st

from gputally.ledger.records import Window
from gputally.model.units import COST_UNIT
from gputally.reports.bill import Bill, bill_with_unallocated
from gputally.reports.cells import UNALLOCATED, Cell, LineJobs, UsageCell
from gputally.reports.choices import EVEN, ROWS, SHARINGS, WEIGHTED
from gputally.reports.query import ReportQuery
from tests.unit.reports.cells import PRICES, cell, cells, line_jobs, price, usages

Parts = tuple[list[Cell], list[LineJobs], list[UsageCell]]
BY_TENANT = ReportQuery(window=Window(0, 1), by=("tenant",))
BY_MODEL = ReportQuery(window=Window(0, 1), by=("tenant", "gpu_model"))
free = st.lists(
    st.builds(
        Cell,
        labels=st.just((UNALLOCATED,)),
        state=st.sampled_from(["free", "cordoned"]),
        price=st.sampled_from(PRICES),
        gpu_time=st.integers(1, 10**19),
    ),
    max_size=5,
)


def shares(bill: Bill) -> dict[tuple[str, ...], float]:
    """In units of the currency, by labels."""
    return {line.labels: line.unallocated_cost / COST_UNIT for line in bill.lines}


def of(hours: float, *labels: str, paid: str | None = "2", state: str = "running") -> Cell:
    found = cell(hours, price(paid) if paid else None, state=state)
    return Cell(labels=labels, state=found.state, price=found.price, gpu_time=found.gpu_time)


def test_even_shares_are_equal_and_weighted_ones_follow_the_cost() -> None:
    parts: Parts = ([of(1, "red"), of(3, "blue"), of(9, "green", paid=None)], [], [])
    unallocated = [of(4, UNALLOCATED, state="free")]

    assert shares(bill_with_unallocated(parts, unallocated, BY_TENANT, sharing=EVEN)) == {
        ("red",): 4,
        ("blue",): 4,
        ("green",): 0,
    }
    assert shares(bill_with_unallocated(parts, unallocated, BY_TENANT, sharing=WEIGHTED)) == {
        ("red",): 2,
        ("blue",): 6,
        ("green",): 0,
    }


def test_a_model_is_shared_among_those_who_held_some_of_it() -> None:
    parts: Parts = ([of(1, "red", "H100"), of(3, "blue", "A100"), of(3, "red", "A100")], [], [])
    unallocated = [
        of(2, UNALLOCATED, "A100", state="free"),
        of(5, UNALLOCATED, "T4", state="free"),
        of(7, UNALLOCATED, "H100", state="free", paid=None),
    ]

    bill = bill_with_unallocated(parts, unallocated, BY_MODEL, sharing=WEIGHTED)

    assert shares(bill) == {
        ("red", "H100"): 0,
        ("blue", "A100"): 2,
        ("red", "A100"): 2,
        (UNALLOCATED, "T4"): 0,
        (UNALLOCATED, "H100"): 0,
    }
    assert [total.cost / COST_UNIT for total in bill.totals] == [2 * (1 + 3 + 3 + 5)]


@given(cells, line_jobs, usages, free, st.sampled_from(SHARINGS))
def test_nothing_is_lost_and_nothing_invented(
    found: list[Cell], jobs: list[LineJobs], usage: list[UsageCell], unallocated: list[Cell], sharing: str
) -> None:
    bill = bill_with_unallocated((found, jobs, usage), unallocated, BY_TENANT, sharing=sharing)

    cost = sum(each.cost for each in (*found, *unallocated))
    for lines in (bill.lines, bill.totals):
        assert sum(line.cost + line.unallocated_cost for line in lines) == cost
    for total in bill.totals:
        own = [line for line in bill.lines if line.currency == total.currency]
        assert sum(line.unallocated_cost for line in own) == total.unallocated_cost
        shared = [line for line in own if line.unallocated_cost]
        if sharing == ROWS:
            assert shared == []
        elif sharing == EVEN and shared:
            assert max(line.unallocated_cost for line in shared) - min(line.unallocated_cost for line in shared) <= 1
        for line in shared if sharing == WEIGHTED else ():
            weight = sum(each.cost for each in own if each.labels != (UNALLOCATED,))
            assert abs(line.unallocated_cost - total.unallocated_cost * line.cost / weight) <= 1e-9 * line.cost
