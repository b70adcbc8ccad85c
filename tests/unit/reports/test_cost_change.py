"""The causes of a change are what a person would name, and add up to it."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.model.units import COST_UNIT
from gputally.reports.bill_rows import change_rows
from gputally.reports.cells import JobCell
from gputally.reports.cost_change import CAUSES, compare
from tests.unit.reports.cells import job_cell, job_cells, price

TWO, THREE, FOUR = price("2"), price("3"), price("4")


def causes(before: list[JobCell], after: list[JobCell]) -> dict[str, Fraction]:
    """The causes of the only line's change that are not 0, in currency units."""
    [change] = compare(before, after)
    found = {cause: getattr(change, cause) / COST_UNIT for cause in CAUSES}
    assert sum(found.values()) == (change.after - change.before) / COST_UNIT
    return {cause: amount for cause, amount in found.items() if amount}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        pytest.param([job_cell(10, TWO)], [job_cell(10, TWO)], {}, id="nothing changed"),
        pytest.param([job_cell(10, TWO)], [job_cell(15, TWO)], {"quantity": 10}, id="more hours"),
        pytest.param([job_cell(10, TWO)], [job_cell(10, THREE)], {"price": 10}, id="a higher price"),
        pytest.param(
            [job_cell(10, TWO)], [job_cell(5, THREE)], {"quantity": -10, "price": 5}, id="fewer hours, dearer"
        ),
        pytest.param([], [job_cell(5, TWO)], {"new_jobs": 10}, id="a new job"),
        pytest.param([job_cell(5, TWO)], [], {"ended_jobs": -10}, id="an ended job"),
        pytest.param(
            [job_cell(10, TWO), job_cell(1, TWO, job="old")],
            [job_cell(10, TWO), job_cell(3, TWO, job="new")],
            {"new_jobs": 6, "ended_jobs": -2},
            id="jobs come and go",
        ),
        pytest.param(
            [job_cell(5, TWO), job_cell(5, FOUR, model="B200")],
            [job_cell(2, TWO), job_cell(8, FOUR, model="B200")],
            {"mix": 6},
            id="a dearer mix",
        ),
        pytest.param(
            [job_cell(5, TWO)],
            [job_cell(5, TWO), job_cell(5, FOUR, model="B200")],
            {"quantity": 10, "mix": 10},
            id="a new model",
        ),
        pytest.param([job_cell(5, None)], [job_cell(5, TWO)], {"price": 10}, id="a price for what had none"),
    ],
)
def test_the_causes_of_a_change(before: list[JobCell], after: list[JobCell], found: dict[str, int]) -> None:
    assert causes(before, after) == found


def test_the_largest_change_comes_first() -> None:
    found = compare(
        [job_cell(1, TWO), job_cell(9, TWO, line="blue")],
        [job_cell(2, TWO), job_cell(1, TWO, line="blue"), job_cell(1, TWO, line="new")],
    )

    assert [each.labels for each in found] == [("blue",), ("new",), ("red",)]


@given(job_cells, job_cells)
def test_causes_add_up_and_periods_are_bills(before: list[JobCell], after: list[JobCell]) -> None:
    changes = compare(before, after)

    for change in changes:
        assert sum(getattr(change, cause) for cause in CAUSES) == change.after - change.before
    for field, period in (("before", before), ("after", after)):
        total = sum(each.cost for each in period)
        assert sum(getattr(each, field) for each in changes) == total


@given(job_cells, job_cells, st.none() | st.integers(1, 3))
def test_shown_causes_add_up_to_the_shown_difference(
    before: list[JobCell], after: list[JobCell], top: int | None
) -> None:
    changes = compare(before, after)
    for currency in {each.currency for each in changes}:
        *rows, total = change_rows([each for each in changes if each.currency == currency], places=2, top=top)
        for row in (*rows, total):
            assert sum((getattr(row, cause) for cause in CAUSES), Decimal()) == row.difference == row.after - row.before
        for field in ("before", "after", "difference", *CAUSES):
            assert sum((getattr(row, field) for row in rows), Decimal()) == getattr(total, field)
