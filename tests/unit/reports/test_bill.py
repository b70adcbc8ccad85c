"""A bill adds up, exactly and as shown."""

from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.ledger.records import MeasuredTime
from gputally.model.price import Price
from gputally.model.units import COST_UNIT, GPU_HOUR
from gputally.reports.bill import Line, bill_of
from gputally.reports.bill_rows import OTHERS, RowChoice, rows_of
from gputally.reports.cells import Cell, LineJobs, LostCell, UnobservedCell, UsageCell
from tests.unit.reports.cells import (
    Billed,
    billed,
    cell,
    cells,
    line_jobs,
    lost_cells,
    price,
    unobserved_cells,
    usage_cell,
    usages,
)

USD, EUR = price("2.5"), price("1", currency="EUR")
FIELDS = (
    *(
        "gpu_hours",
        "starting",
        "gang_wait",
        "terminating",
        "unpriced",
        "unobserved",
        "measured",
        "used",
        "idle",
        "lost",
    ),
    *("energy_kwh", "cost", "idle_cost", "lost_cost", "share"),
)

choices = st.builds(RowChoice, places=st.integers(0, 6), top=st.none() | st.integers(1, 3), time_columns=st.just(()))


def of(line: str, *numbers: int, paid: Price | None = USD) -> LineJobs:
    return LineJobs(labels=(line,), price=paid, jobs=set(numbers))


def test_a_line_adds_up_what_has_its_labels() -> None:
    bill = bill_of(
        [
            cell(1.75, USD),
            cell(1, USD, state="starting"),
            cell(0.5, USD, state="terminating"),
            cell(0.25, USD, state="gang_wait"),
            cell(4, USD, line="blue"),
        ],
        [of("red", 1, 2), of("blue", 1)],
    )

    assert bill.lines == (
        Line(labels=("blue",), currency="USD", gpu_time=4 * GPU_HOUR, cost=10 * COST_UNIT, jobs=1),
        Line(
            labels=("red",),
            currency="USD",
            gpu_time=7 * GPU_HOUR // 2,
            starting=GPU_HOUR,
            gang_wait=GPU_HOUR // 4,
            terminating=GPU_HOUR // 2,
            cost=35 * COST_UNIT // 4,
            jobs=2,
        ),
    )
    assert [(total.currency, total.gpu_time, total.jobs) for total in bill.totals] == [("USD", 15 * GPU_HOUR // 2, 2)]


def test_a_job_counts_once_on_a_line_and_once_in_the_total() -> None:
    found = [of("red", 1, 2), of("red", 2, 3, paid=None), of("blue", 3)]
    bill = bill_of([cell(2, USD), cell(1, None), cell(1, USD, line="blue")], found)

    assert [(line.labels, line.jobs) for line in bill.lines] == [(("red",), 3), (("blue",), 1)]
    assert [total.jobs for total in bill.totals] == [3]


def test_unpriced_time_is_shown_beside_the_cost_of_the_only_currency() -> None:
    [line] = bill_of([cell(1, None), cell(1, EUR)]).lines

    assert (line.currency, line.gpu_time, line.unpriced, line.cost) == ("EUR", 2 * GPU_HOUR, GPU_HOUR, COST_UNIT)


def test_two_currencies_are_never_added_up() -> None:
    bill = bill_of([cell(1, None), cell(1, EUR), cell(1, USD)])

    assert [(total.currency, total.gpu_time, total.cost) for total in bill.totals] == [
        ("", GPU_HOUR, 0),
        ("EUR", GPU_HOUR, COST_UNIT),
        ("USD", GPU_HOUR, 5 * COST_UNIT // 2),
    ]


def test_time_without_any_price_has_shares_of_gpu_hours() -> None:
    [found] = rows_of(bill_of([cell(1, None), cell(3, None, line="blue")]), RowChoice(2))

    assert [(row.labels, row.share, row.cost) for row in found.rows] == [
        (("blue",), Decimal("75.0"), Decimal("0.00")),
        (("red",), Decimal("25.0"), Decimal("0.00")),
    ]


def test_lines_beyond_the_top_ones_are_added_up() -> None:
    jobs = [of(f"t{each}", each) for each in (1, 2, 3, 4)]
    bill = bill_of([cell(each, USD, line=f"t{each}") for each in (1, 2, 3, 4)], jobs)
    [found] = rows_of(bill, RowChoice(2, top=2))

    assert [(row.labels, row.gpu_hours, row.jobs) for row in found.rows] == [
        (("t4",), Decimal("4.00"), 1),
        (("t3",), Decimal("3.00"), 1),
        ((OTHERS,), Decimal("3.00"), 2),
    ]


def test_used_and_idle_time_are_what_was_measured() -> None:
    """Use above the share of a container is not part of its GPU-time."""
    usage = [
        usage_cell("red", MeasuredTime(("red",), USD, 10 * GPU_HOUR, 7 * GPU_HOUR, 3 * GPU_HOUR, 3_600_000_000)),
        usage_cell("blue", MeasuredTime(("blue",), None, GPU_HOUR, 0, 0, 0)),
    ]
    [found] = rows_of(bill_of([cell(12, USD), cell(2, None, line="blue")], usage=usage), RowChoice(2))

    assert [
        (row.labels, row.measured, row.used, row.idle, row.utilisation, row.idle_cost, row.energy_kwh)
        for row in (*found.rows, found.total)
    ] == [
        (("red",), Decimal(10), Decimal(4), Decimal(6), Decimal(40), Decimal(15), Decimal(1)),
        (("blue",), Decimal(1), Decimal(0), Decimal(1), Decimal(0), Decimal(0), Decimal(0)),
        ((), Decimal(11), Decimal(4), Decimal(7), Decimal("36.4"), Decimal(15), Decimal(1)),
    ]


def test_without_measurements_the_utilisation_is_unknown() -> None:
    [found] = rows_of(bill_of([cell(1, USD)]), RowChoice(2))

    assert [row.utilisation for row in (*found.rows, found.total)] == [None, None]


def test_rows_by_time_are_in_its_order() -> None:
    days = bill_of([cell(each, USD, line=f"2026-10-0{each}") for each in (1, 2, 3)])

    [all_of_them] = rows_of(days, RowChoice(2, time_columns=(0,)))
    [top] = rows_of(days, RowChoice(2, top=2, time_columns=(0,)))
    assert [row.labels[0] for row in all_of_them.rows] == ["2026-10-01", "2026-10-02", "2026-10-03"]
    assert [row.labels[0] for row in top.rows] == ["2026-10-02", "2026-10-03", OTHERS]


def test_unobserved_time_is_no_part_of_the_bill() -> None:
    gaps = [
        UnobservedCell(labels=(line,), price=paid, gpu_time=GPU_HOUR // 3)
        for line, paid in (("red", USD), ("red", None), ("blue", USD), ("green", EUR))
    ]
    found = rows_of(bill_of([cell(2, USD), cell(1, USD, line="blue")], unobserved=gaps, unpriced="USD"), RowChoice(2))

    assert [
        (each.total.currency, row.labels, row.gpu_hours, row.cost, row.unobserved)
        for each in found
        for row in (*each.rows, each.total)
    ] == [
        ("EUR", ("green",), Decimal(0), Decimal(0), Decimal("0.33")),
        ("EUR", (), Decimal(0), Decimal(0), Decimal("0.33")),
        ("USD", ("red",), Decimal(2), Decimal(5), Decimal("0.67")),
        ("USD", ("blue",), Decimal(1), Decimal("2.5"), Decimal("0.33")),
        ("USD", (), Decimal(3), Decimal("7.5"), Decimal("1.00")),
    ]


@pytest.mark.parametrize(("gaps", "shown"), [(None, None), ((), Decimal(0))])
def test_unobserved_time_that_is_not_known_is_not_0(gaps: tuple[UnobservedCell, ...] | None, shown: Decimal) -> None:
    found = [cell(each, USD, line=f"t{each}") for each in (1, 2, 3)]
    [bill] = rows_of(bill_of(found, unobserved=gaps), RowChoice(2, top=1))

    assert [row.unobserved for row in (*bill.rows, bill.total)] == [shown] * 3


@given(cells, line_jobs, usages, unobserved_cells, lost_cells, choices)
def test_shown_rows_add_up_to_the_shown_total(
    found: list[Cell],
    jobs: list[LineJobs],
    usage: list[UsageCell],
    gaps: list[UnobservedCell],
    lost: list[LostCell],
    choice: RowChoice,
) -> None:
    bill = bill_of(found, jobs, usage, lost=lost, unobserved=gaps)

    assert sum(total.lost for total in bill.totals) == sum(each.gpu_time for each in lost)
    assert sum(total.lost_cost for total in bill.totals) == sum(each.cost for each in lost)
    assert sum(total.unobserved or 0 for total in bill.totals) == sum(each.gpu_time for each in gaps)
    for each in rows_of(bill, choice):
        for field in FIELDS:
            assert sum(getattr(row, field) for row in each.rows) == getattr(each.total, field)
        assert any(row.is_lost_upper_bound for row in each.rows) == each.total.is_lost_upper_bound
    assert any(each.is_lost_upper_bound for each in bill.totals) == any(each.is_upper_bound for each in lost)


PARTS = {
    "starting": "gpu_hours",
    "gang_wait": "gpu_hours",
    "terminating": "gpu_hours",
    "unpriced": "gpu_hours",
    "measured": "gpu_hours",
    "used": "measured",
    "idle": "measured",
    "lost": "gpu_hours",
    "idle_cost": "cost",
    "lost_cost": "cost",
}


@given(billed, choices)
def test_no_shown_part_exceeds_the_shown_amount_that_it_is_part_of(found: Billed, choice: RowChoice) -> None:
    for each in rows_of(bill_of(found.cells, [], found.usage, lost=found.lost), choice):
        for row in (*each.rows, each.total):
            for part, whole in PARTS.items():
                assert getattr(row, part) <= getattr(row, whole), (part, row)
            assert row.used + row.idle == row.measured
            assert row.starting + row.gang_wait + row.terminating <= row.gpu_hours


@given(cells)
def test_the_totals_are_those_of_the_cells(found: list[Cell]) -> None:
    cost: Counter[str] = Counter()
    for each in found:
        if each.price:
            cost[each.price.currency] += each.gpu_time * each.price.rate
    bill = bill_of(found)

    assert {total.currency: total.cost for total in bill.totals if total.cost} == cost
    assert sum(total.gpu_time for total in bill.totals) == sum(each.gpu_time for each in found)


@pytest.mark.parametrize("top", [None, 3])
def test_no_cells_are_no_rows(top: int | None) -> None:
    assert rows_of(bill_of([]), RowChoice(2, top)) == []
