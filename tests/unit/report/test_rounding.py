"""Rounded parts add up, and each is next to its exact value."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.report.rounding import apportioned, rounded

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
