"""Periods follow the calendar of a time zone, and cover their window."""

from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.ledger.records import Window
from gputally.model.units import US_PER_HOUR, to_us
from gputally.reports.choices import TIME_DIMENSIONS
from gputally.reports.named_hours import BUSINESS_HOURS, name_of, parse_hours
from gputally.reports.time_dimensions import Calendar, Periods, hours_of, in_order_of_time, periods_of
from gputally.reports.windows import parse_window

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = (UTC, BERLIN, ZoneInfo("Asia/Kathmandu"), ZoneInfo("America/Sao_Paulo"), ZoneInfo("Australia/Lord_Howe"))
TROLL = ZoneInfo("Antarctica/Troll")
NOW_US = to_us(datetime(2026, 11, 18, tzinfo=UTC))


def month(text: str, zone: tzinfo = BERLIN) -> Window:
    return parse_window(text, now_us=NOW_US, zone=zone)


def labels(dimension: str, window: Window, zone: tzinfo = BERLIN) -> list[str]:
    return [values[dimension] for values in periods_of((dimension,), window, Calendar(zone)).values]


@pytest.mark.parametrize(
    ("dimension", "count", "first", "last"),
    [
        ("hour", 745, "2026-10-01 00:00", "2026-10-31 23:00"),
        ("day", 31, "2026-10-01", "2026-10-31"),
        ("week", 5, "2026-09-28", "2026-10-26"),
        ("month", 1, "2026-10", "2026-10"),
        ("hour_of_day", 744, "00:00", "23:00"),
        ("weekday", 31, "4 Thursday", "6 Saturday"),
        ("hours", 45, "other", "other"),
    ],
)
def test_a_month_with_the_end_of_summer_time(dimension: str, count: int, first: str, last: str) -> None:
    found = labels(dimension, month("2026-10"))

    assert (len(found), found[0], found[-1]) == (count, first, last)


def test_the_hour_that_the_clock_repeats_is_one_of_two_hours() -> None:
    found = periods_of(("hour_of_day",), month("2026-10-25"), Calendar(BERLIN))

    assert labels("hour_of_day", month("2026-10-25"))[:4] == ["00:00", "01:00", "02:00", "03:00"]
    assert [after - before for before, after in pairwise(found.cuts)][:2] == [US_PER_HOUR, 2 * US_PER_HOUR]


@pytest.mark.parametrize(
    ("zone", "window", "repeated"),
    [
        ("Europe/Berlin", "2026-10-25", ["2026-10-25 02:00+02:00", "2026-10-25 02:00+01:00"]),
        ("America/New_York", "2026-11-01", ["2026-11-01 01:00-04:00", "2026-11-01 01:00-05:00"]),
        ("Australia/Lord_Howe", "2026-04-05", ["2026-04-05 01:00+11:00", "2026-04-05 01:00+10:30"]),
        ("Europe/Berlin", "2026-03-29", []),
        ("UTC", "2026-10-25", []),
    ],
)
def test_both_hours_that_a_clock_shows_have_their_offset_in_the_order_of_time(
    zone: str, window: str, repeated: list[str]
) -> None:
    found = labels("hour", month(window, ZoneInfo(zone)), ZoneInfo(zone))

    assert [each for each in found if len(each) > len("2026-10-25 02:00")] == repeated
    assert sorted(found, key=in_order_of_time) == found


@given(
    start=st.integers(0, 16_000),
    hours=st.integers(1, 200),
    zone=st.sampled_from([*ZONES, TROLL, ZoneInfo("America/Caracas")]),
)
def test_every_hour_has_a_name_of_its_own_and_names_sort_by_time(start: int, hours: int, zone: tzinfo) -> None:
    """On any of the 16,000 days from 1980 on; where clocks go back by two hours, names do not sort."""
    start_us = 3653 * 24 * US_PER_HOUR + start * 24 * US_PER_HOUR
    window = Window(start_us, start_us + hours * US_PER_HOUR)
    found = periods_of(("hour",), window, Calendar(zone))
    names = [values["hour"] for values in found.values]

    assert len(set(names)) == len(names)
    assert zone is TROLL or sorted(names, key=in_order_of_time) == names
    whole = list(hours_of(window, zone))
    assert tuple(each.end_us for each in whole[:-1]) == found.cuts
    assert all(each.end_us - each.start_us <= US_PER_HOUR for each in whole)


def test_several_dimensions_of_time_divide_a_window_together() -> None:
    found = periods_of(("day", "hours"), month("2026-10-30/2026-11-01"), Calendar(BERLIN))

    assert [tuple(each.values()) for each in found.values] == [
        ("2026-10-30", "other"),
        ("2026-10-30", "business"),
        ("2026-10-30", "other"),
        ("2026-10-31", "other"),
    ]


@pytest.mark.parametrize(
    ("text", "name", "inside", "outside"),
    [
        (
            "Mon-Fri 9-17",
            "business",
            ["2026-10-30T09:00", "2026-10-30T16:59"],
            ["2026-10-30T17:00", "2026-10-31T10:00"],
        ),
        (
            "night=Fri 22-6:30",
            "night",
            ["2026-10-30T22:00", "2026-10-31T06:29"],
            ["2026-10-30T06:00", "2026-10-31T22:00"],
        ),
        ("weekend=sat,sun 0-24", "weekend", ["2026-10-31T00:00", "2026-11-01T23:59"], ["2026-11-02T00:00"]),
        ("Sat-Mon 8:15-8:30", "business", ["2026-11-02T08:15"], ["2026-11-03T08:15", "2026-11-02T08:30"]),
    ],
)
def test_named_hours_include_their_start_but_not_their_end(
    text: str, name: str, inside: list[str], outside: list[str]
) -> None:
    hours = parse_hours(text)

    assert hours.name == name
    assert [hours.includes(datetime.fromisoformat(each)) for each in inside] == [True] * len(inside)
    assert [hours.includes(datetime.fromisoformat(each)) for each in outside] == [False] * len(outside)


@pytest.mark.parametrize(
    "text", ["", "9-17", "Mon 9-9", "Mon 9-25", "Mon 9:60-17", "Mon 24-6", "Day 9-17", "=Mon 9-17"]
)
def test_wrong_hours_are_rejected_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not valid; use "):
        parse_hours(text)


def test_the_first_named_hours_that_include_a_time_name_it() -> None:
    hours = (parse_hours("night=Mon-Sun 22-6"), *BUSINESS_HOURS, parse_hours("day=Mon-Sun 6-22"))

    times = ("2026-10-30T23:00", "2026-10-30T10:00", "2026-10-30T18:00")
    assert [name_of(hours, datetime.fromisoformat(each)) for each in times] == ["night", "business", "day"]


@given(
    dimensions=st.lists(st.sampled_from(TIME_DIMENSIONS), unique=True, max_size=2),
    start=st.integers(0, NOW_US),
    hours=st.integers(1, 120),
    zone=st.sampled_from(ZONES),
)
def test_cuts_are_inside_and_ascend_and_each_period_has_the_values_of_all_its_minutes(
    dimensions: list[str], start: int, hours: int, zone: tzinfo
) -> None:
    calendar = Calendar(zone, (parse_hours("night=Mon-Sat 22:10-5:50"), parse_hours("odd=Sun,Wed 2:20-2:40")))
    window = Window(start, start + hours * US_PER_HOUR)
    found = periods_of(dimensions, window, calendar)

    assert all(before < after for before, after in pairwise((window.start_us, *found.cuts, window.end_us)))
    assert len(found.values) == len(found.cuts) + 1
    for values, (begin, end) in zip(found.values, pairwise((start, *found.cuts, window.end_us)), strict=True):
        for at_us in (begin, end - 1):
            assert periods_of(dimensions, Window(at_us, at_us + 1), calendar).values == (values,)


def test_more_cuts_divide_periods_that_keep_their_values() -> None:
    a, b, c = ({"day": each} for each in "abc")
    days = Periods((10, 20), (a, b, c))

    assert days.divided((20, 5, 13)) == Periods((5, 10, 13, 20), (a, a, b, b, c))
    assert days.divided(()) == days
