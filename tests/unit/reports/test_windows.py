"""Periods mean what people mean by them, also in a time zone with daylight saving."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.ledger.records import Window
from gputally.model.units import US_PER_HOUR, to_us
from gputally.reports.windows import equal_part, parse_window, previous

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)
NOW_US = to_us(NOW)
PERIODS = (
    *("today", "yesterday", "week", "last-week", "month", "last-month", "year", "last-year"),
    *("2026", "2026-10", "2026-10-25", "7d", "12h", "2w"),
)


def window(start: str, end: str) -> Window:
    return Window(*(to_us(datetime.fromisoformat(each).replace(tzinfo=UTC)) for each in (start, end)))


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", "2026-11-18", "2026-11-19"),
        ("yesterday", "2026-11-17", "2026-11-18"),
        ("week", "2026-11-16", "2026-11-23"),
        ("last-week", "2026-11-09", "2026-11-16"),
        ("month", "2026-11-01", "2026-12-01"),
        ("last-month", "2026-10-01", "2026-11-01"),
        ("year", "2026-01-01", "2027-01-01"),
        ("last-year", "2025-01-01", "2026-01-01"),
        ("12h", "2026-11-17T21:30", "2026-11-18T09:30"),
        ("7d", "2026-11-11T09:30", "2026-11-18T09:30"),
        ("2w", "2026-11-04T09:30", "2026-11-18T09:30"),
        ("2024", "2024-01-01", "2025-01-01"),
        ("2026-12", "2026-12-01", "2027-01-01"),
        ("2026-Q4", "2026-10-01", "2027-01-01"),
        ("2026-Q1", "2026-01-01", "2026-04-01"),
        ("2024-02-28", "2024-02-28", "2024-02-29"),
        ("2026-10-01/2026-10-15T06:00", "2026-10-01", "2026-10-15T06:00"),
        ("2026-10-01T02:00+02:00/", "2026-10-01", "2026-11-18T09:30"),
        ("all", "1970-01-01", "2026-11-18T09:30"),
    ],
)
def test_a_period_in_utc(text: str, start: str, end: str) -> None:
    assert parse_window(text, now_us=NOW_US, zone=UTC) == window(start, end)


@pytest.mark.parametrize(
    ("text", "hours", "start"),
    [
        ("2026-10-25", 25, "2026-10-24T22:00"),
        ("2026-03-29", 23, "2026-03-28T23:00"),
        ("2026-10", 31 * 24 + 1, "2026-09-30T22:00"),
        ("today", 24, "2026-11-17T23:00"),
        ("2026-10-25T00:00/2026-10-26T00:00", 25, "2026-10-24T22:00"),
    ],
)
def test_days_of_a_zone_with_daylight_saving_have_their_true_length(text: str, hours: int, start: str) -> None:
    found = parse_window(text, now_us=NOW_US, zone=BERLIN)

    assert found == Window(window(start, start).start_us, window(start, start).start_us + hours * US_PER_HOUR)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "foo",
        "7",
        "0d",
        "7x",
        "2026-13",
        "2026-02-30",
        "2026-1",
        "0000",
        "9999-12",
        "a/b",
        "/",
        "2026-10-02/2026-10-01",
    ],
)
def test_anything_else_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match="is not a period; use today, yesterday"):
        parse_window(text, now_us=NOW_US, zone=UTC)


@pytest.mark.parametrize(
    ("text", "zone", "start", "end"),
    [
        ("2026-10", UTC, "2026-09-01", "2026-10-01"),
        ("2026-03", UTC, "2026-02-01", "2026-03-01"),
        ("last-week", UTC, "2026-11-02", "2026-11-09"),
        ("2026-10-26", BERLIN, "2026-10-24T22:00", "2026-10-25T23:00"),
        ("2025", UTC, "2024-01-01", "2025-01-01"),
        ("2026-10-10/2026-10-15", UTC, "2026-10-05", "2026-10-10"),
        ("7d", UTC, "2026-11-04T09:30", "2026-11-11T09:30"),
        ("month", UTC, "2026-10-01", "2026-10-18T09:30"),
        ("today", UTC, "2026-11-17", "2026-11-17T09:30"),
    ],
)
def test_the_period_before(text: str, zone: ZoneInfo, start: str, end: str) -> None:
    now = parse_window(text, now_us=NOW_US, zone=zone)

    assert equal_part(previous(now, zone=zone), of=now, until_us=NOW_US) == window(start, end)


@given(text=st.sampled_from(PERIODS), at=st.integers(to_us(datetime(1990, 1, 1, tzinfo=UTC)), NOW_US))
def test_the_period_before_ends_at_the_latest_where_a_period_begins(text: str, at: int) -> None:
    found = parse_window(text, now_us=at, zone=BERLIN)
    before = equal_part(previous(found, zone=BERLIN), of=found, until_us=max(at, found.start_us + 1))

    assert before.start_us < before.end_us <= found.start_us < found.end_us


@given(
    text=st.sampled_from(PERIODS),
    other=st.sampled_from(PERIODS),
    at=st.integers(to_us(datetime(1990, 1, 1, tzinfo=UTC)), NOW_US),
    zone=st.sampled_from([UTC, BERLIN, ZoneInfo("Australia/Lord_Howe")]),
)
def test_a_period_that_is_not_over_is_compared_with_as_many_hours(
    text: str, other: str, at: int, zone: ZoneInfo
) -> None:
    found, earlier = (parse_window(each, now_us=at, zone=zone) for each in (text, other))
    part = equal_part(earlier, of=found, until_us=at)

    so_far = max(0, at - found.start_us)
    length = earlier.end_us - earlier.start_us
    assert part.start_us == earlier.start_us
    assert part.end_us - part.start_us == (min(so_far, length) if at < found.end_us else length)
