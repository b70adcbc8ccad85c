"""Rounded parts add up, and each is next to its exact value."""

from decimal import Decimal
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.reports.rounding import RunningSums, apportioned, apportioned_within, column_of, rounded

FRACTIONS = st.lists(st.fractions(min_value=-1000, max_value=1000, max_denominator=97), min_size=1, max_size=30)


@given(FRACTIONS)
def test_the_parts_add_up_to_the_rounded_sum(parts: list[Fraction]) -> None:
    found = apportioned(column_of(parts), total=rounded(sum(parts, Fraction())))

    assert sum(found) == rounded(sum(parts, Fraction()))
    assert all(abs(each - part) < 1 for each, part in zip(found, parts, strict=True))


@given(FRACTIONS, st.integers(-5000, 5000))
def test_they_add_up_to_any_total(parts: list[Fraction], total: int) -> None:
    assert sum(apportioned(column_of(parts), total=total)) == total


@pytest.mark.parametrize(
    ("parts", "total", "found"),
    [
        (["1/3", "1/3", "1/3"], 1, [1, 0, 0]),
        (["0.4", "0.4", "0.2"], 1, [1, 0, 0]),
        (["2.5", "3.7", "1.8"], 8, [2, 4, 2]),
        (["-0.5", "1.5"], 1, [0, 1]),
        ([], 0, []),
    ],
)
def test_the_largest_remainders_are_rounded_up(parts: list[str], total: int, found: list[int]) -> None:
    assert apportioned(column_of(Fraction(part) for part in parts), total=total) == found


@st.composite
def wholes_and_parts(draw: st.DrawFn) -> tuple[list[Fraction], list[Fraction]]:
    """Amounts, and a part of each."""
    wholes = draw(st.lists(st.fractions(0, 20, max_denominator=97), min_size=1, max_size=30))
    shares = draw(
        st.lists(st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(1)]), min_size=30, max_size=30)
    )
    return wholes, [whole * share for whole, share in zip(wholes, shares, strict=False)]


@given(wholes_and_parts())
def test_a_part_never_exceeds_what_is_shown_for_its_whole(amounts: tuple[list[Fraction], list[Fraction]]) -> None:
    wholes, parts = amounts
    totals = [rounded(sum(each, Fraction())) for each in amounts]
    limits = apportioned(column_of(wholes), total=totals[0])

    found = apportioned_within(column_of(parts), total=totals[1], limits=limits)

    assert sum(found) == totals[1]
    assert all(each <= limit for each, limit in zip(found, limits, strict=True))
    assert all(each >= floor(part) for each, part in zip(found, parts, strict=True))


@given(FRACTIONS, st.integers(-5000, 5000), st.integers(-10, 10))
def test_parts_add_up_even_if_their_limits_leave_too_little(parts: list[Fraction], total: int, limit: int) -> None:
    assert sum(apportioned_within(column_of(parts), total=total, limits=[limit] * len(parts))) == total


def test_a_part_that_was_rounded_alone_would_exceed_its_whole() -> None:
    """Both rows have 0.5, of which the second is all idle: the last unit of cost is in the first row."""
    costs, idle = [Fraction(1, 2), Fraction(1, 2)], [Fraction(2, 5), Fraction(1, 2)]

    assert (apportioned(column_of(costs), total=1), apportioned(column_of(idle), total=1)) == ([1, 0], [0, 1])
    assert apportioned_within(column_of(idle), total=1, limits=[1, 0]) == [1, 0]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-1000, 1000))), st.integers(1, 97), st.integers(0, 3))
def test_a_stream_of_rounded_amounts_adds_up_to_the_rounded_sum(
    amounts: list[tuple[str, int]], unit: int, places: int
) -> None:
    running = RunningSums(unit, places)
    shown = [(of, value, running.add(value, of=of)) for of, value in amounts]

    for name in "ab":
        exact = Fraction(sum(value for of, value, _ in shown if of == name) * 10**places, unit)
        assert sum(each for of, _, each in shown if of == name) == Decimal(rounded(exact)).scaleb(-places)
    assert all(abs(Fraction(each) - Fraction(value, unit)) <= Fraction(1, 10**places) for _, value, each in shown)
