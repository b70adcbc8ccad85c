"""Rounded parts add up, and each is next to its exact value."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.report.rounding import RunningSums, apportioned, rounded

FRACTIONS = st.lists(st.fractions(min_value=-1000, max_value=1000, max_denominator=97), min_size=1, max_size=30)


@given(FRACTIONS)
def test_the_parts_add_up_to_the_rounded_sum(parts: list[Fraction]) -> None:
    found = apportioned(parts, total=rounded(sum(parts, Fraction())))

    assert sum(found) == rounded(sum(parts, Fraction()))
    assert all(abs(each - part) < 1 for each, part in zip(found, parts, strict=True))


@given(FRACTIONS, st.integers(-5000, 5000))
def test_they_add_up_to_any_total(parts: list[Fraction], total: int) -> None:
    assert sum(apportioned(parts, total=total)) == total


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
    assert apportioned([Fraction(part) for part in parts], total=total) == found


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
