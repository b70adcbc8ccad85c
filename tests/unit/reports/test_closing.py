"""Which period is closed next: in order, without overlap, by the calendar of a time zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.ledger.closed_period import ClosedPeriod
from gputally.ledger.records import Window
from gputally.model.periods import Closing, PeriodLength
from gputally.model.units import US_PER_HOUR, to_us
from gputally.reports.closing import NextPeriod, next_period, unclosable
from gputally.reports.windows import parse_window
from tests.property.examples import examples

BERLIN = ZoneInfo("Europe/Berlin")
MONTHLY = Closing(period=PeriodLength.MONTH, after_us=72 * US_PER_HOUR)
PERIOD = ClosedPeriod(
    number=1,
    name="2026-09",
    start_us=0,
    end_us=0,
    zone="UTC",
    cluster="",
    closed_us=0,
    accounted_us=0,
    version="",
    price_book="",
    previous="",
    lines=(),
)


def at(text: str) -> int:
    instant = datetime.fromisoformat(text)
    return to_us(instant if instant.tzinfo else instant.replace(tzinfo=UTC))


OCTOBER = Window(at("2026-10-01"), at("2026-11-01"))


def due(closing: Closing, start: str, last: str | None = None, zone: ZoneInfo | None = None) -> NextPeriod:
    last_us = at(last) if last else None
    found = next_period(closing, zone=zone or UTC, start_us=at(start), last_us=last_us)
    assert found
    return found


@pytest.mark.parametrize(
    ("length", "last", "name"),
    [
        ("month", None, "2026-09"),
        ("month", "2026-10-01", "2026-10"),
        ("month", "2026-12-01", "2026-12"),
        ("quarter", None, "2026-Q3"),
        ("quarter", "2026-10-01", "2026-Q4"),
        ("week", None, "2026-09-14/2026-09-21"),
        ("week", "2026-12-28", "2026-12-28/2027-01-04"),
        ("month", "2026-10-15", "2026-10-15/2026-11-01"),
        ("quarter", "2026-11-01", "2026-11-01/2027-01-01"),
        ("month", "2026-10-15T06:00", "2026-10-15T06:00:00+00:00/2026-11-01"),
    ],
)
def test_the_next_period_follows_the_last_one(length: str, last: str | None, name: str) -> None:
    """Since a shorter period was closed, or the length has changed, it begins within a calendar period."""
    closing = Closing(period=PeriodLength(length), after_us=US_PER_HOUR)

    found = due(closing, "2026-09-16T12:00", last)

    assert found.name == name
    assert found.window == parse_window(name, now_us=0, zone=UTC)
    assert found.due_us == found.window.end_us + US_PER_HOUR


def test_months_are_those_of_the_time_zone() -> None:
    """At 22:30 UTC it is October in Berlin, which has an hour more than 31 days."""
    found = due(MONTHLY, "2026-09-30T22:30", zone=BERLIN)

    assert found.name == "2026-10"
    assert found.window == (at("2026-09-30T22:00"), at("2026-10-31T23:00"))


@pytest.mark.parametrize(
    ("closed", "last", "name"),
    [
        (("2026-10-01/2026-10-15",), "2026-10-01", "2026-10-01/2026-10-15"),
        (("2026-10-05/2026-10-15",), "2026-10-01", "2026-10"),
        (("2026-12", "2026-10"), "2026-10-01", "2026-10"),
        (("2026-12",), "2026-10-01", "2026-10"),
        (("2026-08",), None, "2026-09"),
    ],
)
def test_named_and_regular_periods_close_in_the_order_of_time(
    closed: tuple[str, ...], last: str | None, name: str
) -> None:
    assert due(replace(MONTHLY, closed=closed), "2026-09-16", last).name == name


def test_a_named_period_is_due_at_its_end_and_nothing_after_the_last_one() -> None:
    closing = Closing(closed=("2026-10", "2026-08"))

    assert due(closing, "2026-09-16") == NextPeriod("2026-10", OCTOBER, OCTOBER.end_us)
    assert next_period(closing, zone=UTC, start_us=at("2026-09-16"), last_us=at("2026-11-01")) is None


def test_named_periods_that_can_no_longer_be_closed_are_reported() -> None:
    closing = Closing(closed=("2026-07", "2026-08", "2026-09", "2026-09-20/2026-11-01", "2026-12"))
    closed = [replace(PERIOD, name="2026-09", end_us=at("2026-10-01"))]

    found = unclosable(closing, closed, zone=UTC, start_us=at("2026-08-10"))

    assert found == ["2026-07", "2026-08", "2026-09-20/2026-11-01"]


@given(
    st.sampled_from(PeriodLength),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]),
    st.integers(at("2020-01-01"), at("2040-01-01")),
    st.integers(1, 8),
)
@examples(50)
def test_periods_follow_each_other_without_a_gap_and_have_names_that_mean_them(
    length: PeriodLength, zone: str, start_us: int, count: int
) -> None:
    closing = Closing(period=length, zone=zone)
    last_us = None
    for _ in range(count):
        found = next_period(closing, zone=ZoneInfo(zone), start_us=start_us, last_us=last_us)
        assert found
        assert found.window == parse_window(found.name, now_us=0, zone=ZoneInfo(zone))
        assert found.window.start_us <= start_us if last_us is None else found.window.start_us == last_us
        assert found.window.end_us > start_us
        last_us = found.window.end_us
