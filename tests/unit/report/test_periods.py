"""Periods follow the calendar of a time zone, and cover their window."""

from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.ledger.records import Window
from gputally.model.units import US_PER_HOUR, to_datetime, to_us
from gputally.report.periods import TIME_DIMENSIONS, periods_of
from gputally.report.windows import parse_window

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = (UTC, BERLIN, ZoneInfo("Asia/Kathmandu"), ZoneInfo("America/Sao_Paulo"), ZoneInfo("Australia/Lord_Howe"))
NOW_US = to_us(datetime(2026, 11, 18, tzinfo=UTC))


def month(text: str, zone: tzinfo = BERLIN) -> Window:
    return parse_window(text, now_us=NOW_US, zone=zone)


@pytest.mark.parametrize(
    ("dimension", "count", "first", "last"),
    [
        ("hour", 745, "2026-10-01 00:00", "2026-10-31 23:00"),
        ("day", 31, "2026-10-01", "2026-10-31"),
        ("week", 5, "2026-09-28", "2026-10-26"),
        ("month", 1, "2026-10", "2026-10"),
        ("hour_of_day", 745, "00:00", "23:00"),
        ("weekday", 31, "4 Thursday", "6 Saturday"),
    ],
)
def test_a_month_with_the_end_of_summer_time(dimension: str, count: int, first: str, last: str) -> None:
    found = periods_of(dimension, month("2026-10"), BERLIN)

    assert (len(found.labels), found.labels[0], found.labels[-1]) == (count, first, last)


def test_the_hour_that_the_clock_repeats_is_counted_twice() -> None:
    found = periods_of("hour_of_day", month("2026-10-25"), BERLIN)

    assert found.labels[:5] == ("00:00", "01:00", "02:00", "02:00", "03:00")
    assert [after - before for before, after in pairwise(found.cuts)] == [US_PER_HOUR] * 23


@given(
    dimension=st.sampled_from(TIME_DIMENSIONS),
    start=st.integers(0, NOW_US),
    hours=st.integers(1, 2000),
    zone=st.sampled_from(ZONES),
)
def test_cuts_are_inside_and_ascend_and_each_period_has_one_label(
    dimension: str, start: int, hours: int, zone: tzinfo
) -> None:
    window = Window(start, start + hours * US_PER_HOUR)
    found = periods_of(dimension, window, zone)

    assert all(before < after for before, after in pairwise((window.start_us, *found.cuts, window.end_us)))
    assert len(found.labels) == len(found.cuts) + 1
    for label, (begin, end) in zip(found.labels, pairwise((start, *found.cuts, window.end_us)), strict=True):
        middle = Window((begin + end) // 2, (begin + end) // 2 + 1)
        assert periods_of(dimension, middle, zone).labels == (label,)
        assert to_datetime(begin) < to_datetime(end)
