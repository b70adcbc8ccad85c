"""A forecast follows what days spent, its interval holds as often as it says, and without data there is none."""

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.reports.budgets import MAX_DAYS, MIN_DAYS, ComingDay, ForecastPoint, PastDay, forecast, reached

amounts = st.integers(0, 10**24)
pasts = st.lists(amounts, min_size=MIN_DAYS, max_size=40).map(
    lambda spent: [PastDay(day % 7, each) for day, each in enumerate(spent)]
)


def coming(count: int, *, first: int = 0, part: Fraction = Fraction(1)) -> list[ComingDay]:
    """Days from the weekday `first` on, each a µs long; of the first one, only a part."""
    return [ComingDay((first + day) % 7, part if day == 0 else Fraction(1), day + 1) for day in range(count)]


def constant(spent: int, days: int) -> list[PastDay]:
    return [PastDay(day % 7, spent) for day in range(days)]


@given(amounts, st.integers(MIN_DAYS, 40), st.integers(1, 40), st.fractions(0, 1), amounts)
def test_days_that_all_spend_the_same_go_on_so_with_certainty(
    each: int, days: int, count: int, part: Fraction, spent: int
) -> None:
    end = forecast(constant(each, days), coming(count, part=part), spent=spent, now_us=0)[-1]

    exact = spent + each * (count - 1 + part)
    assert (end.expected, end.lower, end.upper) == (exact, exact, exact)


@given(pasts, st.integers(1, 40), amounts)
def test_the_interval_contains_the_forecast_and_nothing_is_spent_back(
    past: list[PastDay], count: int, spent: int
) -> None:
    points = forecast(past, coming(count), spent=spent, now_us=0)

    assert len(points) == count + 1
    assert all(spent <= each.lower <= each.expected <= each.upper for each in points)
    assert sorted(each.expected for each in points) == [each.expected for each in points]
    assert sorted(each.upper for each in points) == [each.upper for each in points]


@given(pasts, st.integers(1, 20), amounts, amounts)
def test_what_is_already_spent_adds_to_the_forecast_and_to_nothing_else(
    past: list[PastDay], count: int, spent: int, more: int
) -> None:
    one = forecast(past, coming(count), spent=spent, now_us=0)[-1]
    other = forecast(past, coming(count), spent=spent + more, now_us=0)[-1]

    assert {other.expected - one.expected, other.upper - one.upper} == {more}


@given(pasts, st.integers(0, 6), st.integers(1, 12))
def test_from_two_weeks_on_each_weekday_spends_the_mean_of_its_kind(
    past: list[PastDay], first: int, count: int
) -> None:
    days = coming(count, first=first)
    end = forecast(past, days, spent=0, now_us=0)[-1]

    known = past[-MAX_DAYS:]
    expected = Fraction()
    for day in days:
        alike = [each.spent for each in known if len(known) < 14 or each.weekday == day.weekday]
        expected += Fraction(sum(alike), len(alike))
    assert end.expected == expected


@pytest.mark.parametrize("days", range(MIN_DAYS))
def test_without_three_days_there_is_no_forecast(days: int) -> None:
    assert forecast(constant(5, days), coming(3), spent=1, now_us=0) == []


def test_only_four_weeks_count() -> None:
    end = forecast([*constant(1000, 28), *constant(10, 28)], coming(2), spent=0, now_us=0)[-1]

    assert {end.expected, end.upper} == {20}


def test_the_bounds_are_those_of_the_formula() -> None:
    """Worked out by hand: mean 20, s² = (100 + 0 + 100) / 2, no correlation, t = 1.886 for 2 degrees of freedom."""
    past = [PastDay(0, 10), PastDay(1, 20), PastDay(2, 30)]

    end = forecast(past, coming(2), spent=100, now_us=0)[-1]

    width = 1.886 * (100 * (2 + 4 / 3)) ** 0.5
    assert end.expected == 140
    assert (float(end.lower), float(end.upper)) == pytest.approx((140 - width, 140 + width), abs=1)


def test_busy_days_that_follow_busy_days_widen_the_interval() -> None:
    runs = [PastDay(day % 7, 100 if day < 6 else 0) for day in range(12)]
    turns = [PastDay(day % 7, 100 * (day % 2)) for day in range(12)]

    of_runs, of_turns = (forecast(past, coming(9), spent=0, now_us=0)[-1] for past in (runs, turns))

    assert of_runs.expected == of_turns.expected
    assert of_runs.upper > 2 * (of_turns.upper - of_turns.expected) + of_runs.expected


@pytest.mark.parametrize(("days", "ahead"), [(3, 25), (7, 10), (13, 25), (14, 25), (28, 10)])
def test_the_interval_of_independent_days_holds_with_about_80_percent(days: int, ahead: int) -> None:
    chance, hits, trials = random.Random(1), 0, 300
    for _ in range(trials):
        spent = [int(chance.gauss(10_000 if day % 7 < 5 or days < 14 else 2_000, 800)) for day in range(days + ahead)]
        past = [PastDay(day % 7, each) for day, each in enumerate(spent[:days])]
        end = forecast(past, coming(ahead, first=days), spent=0, now_us=0)[-1]
        hits += end.lower <= sum(spent[days:]) <= end.upper

    assert 0.74 <= hits / trials <= 0.9


CURVE = [(0, Fraction(0)), (10, Fraction(5)), (20, Fraction(5)), (30, Fraction(25))]


@pytest.mark.parametrize(
    ("limit", "at_us"), [(0, 0), (1, 2), (4, 8), (5, 20), (15, 25), (24, 29), (25, None), (26, None)]
)
def test_a_limit_is_reached_between_two_instants_in_proportion(limit: int, at_us: int | None) -> None:
    assert reached(CURVE, limit) == at_us


@given(pasts, st.integers(1, 30), amounts)
def test_a_budget_is_exhausted_if_and_only_if_the_forecast_exceeds_it(
    past: list[PastDay], count: int, limit: int
) -> None:
    points: list[ForecastPoint] = forecast(past, coming(count), spent=0, now_us=0)
    at_us = reached(((each.at_us, each.expected) for each in points), limit)

    assert (at_us is not None) == (points[-1].expected > limit)
    earliest_us = reached(((each.at_us, each.upper) for each in points), limit)
    if at_us is not None:
        assert earliest_us is not None
        assert earliest_us <= at_us
