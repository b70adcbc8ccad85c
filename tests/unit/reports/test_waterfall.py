"""Waterfalls add up: from step to step, over their lines, and to what a naive sum says, exactly and rounded."""

from collections import Counter
from decimal import Decimal
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gputally.model.allocation import Outcome
from gputally.model.units import COST_UNIT, GPU_HOUR
from gputally.reports.waterfall import ALLOCATED, CAPACITY, GAINS, KEYS, SUCCEEDED, Billed, WaterfallPart, waterfalls_of
from gputally.reports.waterfall_rows import WaterfallRows, waterfall_rows
from tests.unit.reports.cells import PRICES, price

TWO = PRICES[1]
_keys = st.sampled_from(KEYS)


@st.composite
def _part(draw: st.DrawFn) -> WaterfallPart:
    step, cause = draw(_keys)
    labels = None if step == ALLOCATED else draw(st.sampled_from([("red",), ("blue",), ("green",)]))
    return WaterfallPart(labels, step, cause, draw(st.sampled_from(PRICES)), draw(st.integers(1, 10**17)))


parts = st.lists(_part(), min_size=1, max_size=15)
bills = st.lists(
    st.builds(
        Billed,
        labels=st.sampled_from([("red",), ("blue",)]),
        currency=st.sampled_from(["USD", "EUR"]),
        cost=st.integers(0, 10**30),
    ),
    max_size=3,
)


def of(hours: float, step: str, cause: str, *, line: str | None = "red", priced: bool = True) -> WaterfallPart:
    labels = (line,) if line else None
    return WaterfallPart(labels, step, cause, price("2") if priced else None, int(hours * GPU_HOUR))


def steps(found: WaterfallRows) -> dict[str, Decimal]:
    """GPU-hours by step, or by cause with its sign."""
    return {row.cause or row.step: row.gpu_hours for row in found.rows if row.gpu_hours}


def test_the_used_time_of_each_outcome_of_a_job_is_a_line_of_its_own() -> None:
    used = [of(2**i, SUCCEEDED, outcome.value) for i, outcome in enumerate(Outcome)]

    [whole, _] = waterfall_rows(waterfalls_of(used, [], first=CAPACITY), places=2)

    lost = {row.cause: -row.gpu_hours for row in whole.rows if row.cause and row.gpu_hours}
    assert lost == {outcome.value: 2**i for i, outcome in enumerate(Outcome) if outcome is not Outcome.SUCCEEDED}
    assert whole.rows[-1].gpu_hours == 2 ** list(Outcome).index(Outcome.SUCCEEDED)


def test_each_loss_leads_to_the_next_step() -> None:
    [whole, red] = waterfall_rows(
        waterfalls_of(
            [
                of(5, "allocated", "free", line=None),
                of(1, "allocated", "overcommitted", line=None),
                of(2, "running", "starting"),
                of(3, "measured", "used_beyond_running"),
                of(4, "used", "idle"),
                of(1, "not_lost", "lost_since_checkpoint"),
                of(5, "succeeded", "running"),
                of(7, "succeeded", "succeeded"),
            ],
            [Billed(("red",), "USD", 40 * COST_UNIT)],
            first=CAPACITY,
        ),
        places=2,
    )

    assert steps(whole) == {
        "capacity": 20,
        "free": -5,
        "overcommitted": 1,
        "allocated": 16,
        "starting": -2,
        "running": -5,
        "used_beyond_running": 3,
        "measured": 17,
        "idle": -4,
        "used": 13,
        "lost_since_checkpoint": -1,
        "not_lost": 12,
        "succeeded": 7,
    }
    assert [row.gpu_hours for row in whole.rows if (row.step, row.cause) == ("running", "")] == [14]
    assert (whole.gpu_hour_price, whole.useful_gpu_hour_price) == (Decimal(2), Decimal("5.71"))
    assert (whole.billed, whole.price_differences) == (Decimal(40), Decimal(8))
    assert red.rows[0].step == "allocated"
    assert (red.useful_gpu_hour_price, red.rows[0].share) == (Decimal("4.57"), Decimal(100))


def test_unpriced_time_costs_nothing_and_is_no_part_of_prices() -> None:
    [found] = waterfall_rows(
        waterfalls_of(
            [of(5, "allocated", "free", line=None, priced=False), of(5, "succeeded", "succeeded")], [], first=CAPACITY
        )[:1],
        places=2,
    )

    assert [(row.gpu_hours, row.unpriced, row.cost) for row in found.rows if row.step == CAPACITY] == [
        tuple(map(Decimal, (10, 5, 10)))
    ]
    assert (found.gpu_hour_price, found.useful_gpu_hour_price) == (Decimal(2), Decimal(2))


def test_without_any_price_there_is_no_price_of_a_gpu_hour() -> None:
    [found, _] = waterfall_rows(
        waterfalls_of([of(5, "succeeded", "failed", priced=False)], [], first=ALLOCATED), places=2
    )

    assert (found.currency, found.gpu_hour_price, found.useful_gpu_hour_price) == ("", None, None)
    assert found.rows[0].share == 100


@given(parts, bills)
def test_sums_are_exact(found: list[WaterfallPart], billed: list[Billed]) -> None:
    """The reference adds up all parts that count in a step, one by one."""
    hours, costs = Counter[str](), Counter[str]()
    for each in found:
        sign = -1 if each.cause in GAINS else 1
        hours[CAPACITY] += sign * each.gpu_time
        if each.step != ALLOCATED:
            hours[ALLOCATED] += sign * each.gpu_time
        if each.cause == SUCCEEDED:
            hours[SUCCEEDED] += each.gpu_time
        if each.price:
            costs[each.price.currency] += sign * each.price.cost(each.gpu_time)

    falls = waterfalls_of(found, billed, first=CAPACITY)
    wholes = [each for each in falls if each.labels is None]
    lines = [each for each in falls if each.labels is not None]

    for step in (CAPACITY, ALLOCATED, SUCCEEDED):
        assert sum(each.level(step).gpu_time for each in wholes) == hours[step]
    assert {each.currency: each.level(CAPACITY).cost for each in wholes if each.level(CAPACITY).cost} == +costs | {
        currency: cost for currency, cost in costs.items() if cost < 0
    }
    for whole in wholes:
        own = [each for each in lines if each.currency == whole.currency]
        assert sum(each.billed for each in own) == whole.billed
        for step in whole.steps[1:]:
            assert sum(each.level(step).cost for each in own) == whole.level(step).cost


@given(parts, bills, st.integers(0, 6), st.sampled_from([None, 1, 2]))
def test_rounded_rows_add_up(found: list[WaterfallPart], billed: list[Billed], places: int, top: int | None) -> None:
    rows = waterfall_rows(waterfalls_of(found, billed, first=CAPACITY, top=top), places)

    for each in rows:
        for measure in ("gpu_hours", "unpriced", "cost", "share"):
            _assert_steps_follow(each, measure)
    for whole in (each for each in rows if each.labels is None):
        lines = [each for each in rows if each.labels is not None and each.currency == whole.currency]
        if lines:
            assert sum(each.billed for each in lines) == whole.billed
            for row in whole.rows:
                if row.step not in (CAPACITY, ALLOCATED) or (row.step, row.cause) == (ALLOCATED, ""):
                    same = [
                        other
                        for line in lines
                        for other in line.rows
                        if (other.step, other.cause) == (row.step, row.cause)
                    ]
                    assert sum(other.cost for other in same) == row.cost
                    assert sum(other.gpu_hours for other in same) == row.gpu_hours


def _assert_steps_follow(each: WaterfallRows, measure: str) -> None:
    """Each step is the one before plus the differences between them."""
    levels = [place for place, row in enumerate(each.rows) if not row.cause]
    for before, after in pairwise(levels):
        differences = sum(getattr(row, measure) for row in each.rows[before + 1 : after])
        assert getattr(each.rows[before], measure) + differences == getattr(each.rows[after], measure)
