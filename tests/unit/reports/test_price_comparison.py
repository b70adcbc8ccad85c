"""Rounded rows of a comparison add up, in each direction."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gputally.model.price import Price
from gputally.model.units import COST_UNIT, GPU_HOUR, PICO
from gputally.reports.bill_rows import RowChoice
from gputally.reports.price_comparison import ComparisonRow, compare_prices, comparison_rows
from gputally.reports.rerating import RatedTime
from tests.contract.records import PRICE

ADDED = ("gpu_hours", "newly_priced", "no_longer_priced", "unpriced_before", "unpriced_after", "estimated")
COSTS = ("before", "after", "difference")


def price(milli: int, currency: str) -> Price:
    rate = Decimal(milli).scaleb(-3)
    return Price(
        key=f"{milli}{currency}",
        currency=currency,
        per_gpu_hour=rate,
        rate=int(rate * PICO),
        basis=PRICE.basis,
        purchase=PRICE.purchase,
    )


def prices(*currencies: str) -> st.SearchStrategy[Price | None]:
    return st.none() | st.builds(price, st.integers(0, 5000), st.sampled_from(currencies))


def times(*currencies: str) -> st.SearchStrategy[list[RatedTime]]:
    return st.lists(
        st.builds(
            RatedTime,
            labels=st.tuples(st.sampled_from("abcdef")),
            gpu_time=st.integers(1, 5 * GPU_HOUR),
            before=prices(*currencies),
            after=prices("EUR"),
            is_guessed=st.booleans(),
            unknown_keys=st.just(frozenset[str]()),
            is_of_changed_day=st.booleans(),
        ),
        max_size=12,
    )


@given(times("EUR"), st.integers(0, 3), st.none() | st.integers(1, 4))
def test_rows_add_up_to_their_total_and_each_row_to_its_cost_after(
    found: list[RatedTime], places: int, top: int | None
) -> None:
    for table in comparison_rows(compare_prices(found, currency="EUR"), RowChoice(places, top)):
        for name in (*ADDED, *COSTS):
            assert sum(getattr(row, name) or 0 for row in table.rows) == (getattr(table.total, name) or 0)
        for row in (*table.rows, table.total):
            assert_parts_add_up(row)


def assert_parts_add_up(row: ComparisonRow) -> None:
    zero = Decimal()
    parts = (row.before or zero) + (row.difference or zero) + row.newly_priced - row.no_longer_priced
    assert (row.after or zero) == parts
    assert (row.change is None) or row.difference is not None


@given(times("EUR", "USD"), st.integers(0, 3))
def test_totals_are_the_rounded_costs_and_only_equal_currencies_have_a_difference(
    found: list[RatedTime], places: int
) -> None:
    for table in comparison_rows(compare_prices(found, currency="EUR"), RowChoice(places)):
        total = table.total
        exact = sum(
            each.before.cost(each.gpu_time) for each in found if each.before and each.before.currency == total.currency
        )
        assert (total.before or 0) == Decimal(round(Fraction(exact * 10**places, COST_UNIT))).scaleb(-places)
        assert total.currency == "EUR" or all(row.difference is None for row in (*table.rows, total))
