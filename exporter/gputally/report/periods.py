"""Dimensions of time: days, weeks and months of a period, and hours of the day or days of the week over all of it."""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

from gputally.ledger.records import Window
from gputally.model.units import US_PER_HOUR, to_datetime, to_us


class Periods(NamedTuple):
    """`cuts` (µs) divide a window into periods, each with its label; different periods may have the same label."""

    cuts: tuple[int, ...]
    labels: tuple[str, ...]


def periods_of(dimension: str, window: Window, zone: tzinfo) -> Periods:
    """The periods of a window by one of `TIME_DIMENSIONS`, by the calendar of `zone`."""
    advance, label = _CALENDARS[dimension]
    cuts = list[int]()
    at_us = window.start_us
    while (at_us := advance(to_datetime(at_us).astimezone(zone))) < window.end_us:
        cuts.append(at_us)
    starts = (window.start_us, *cuts)
    return Periods(tuple(cuts), tuple(label(to_datetime(us).astimezone(zone)) for us in starts))


def _next_hour(at: datetime) -> int:
    """The next full hour of the clock; zones differ from UTC by quarters of an hour."""
    into_hour_us = (at.minute * 60 + at.second) * 1_000_000 + at.microsecond
    return to_us(at) - into_hour_us + US_PER_HOUR


def _midnight(day: date, zone: tzinfo | None) -> int:
    return to_us(datetime.combine(day, time(), zone))


def _next_day(at: datetime) -> int:
    return _midnight(at.date() + timedelta(days=1), at.tzinfo)


def _next_week(at: datetime) -> int:
    return _midnight(at.date() + timedelta(days=7 - at.weekday()), at.tzinfo)


def _next_month(at: datetime) -> int:
    return _midnight((at.date().replace(day=1) + timedelta(days=31)).replace(day=1), at.tzinfo)


def _monday(at: datetime) -> str:
    return f"{at.date() - timedelta(days=at.weekday())}"


_CALENDARS: Final[Mapping[str, tuple[Callable[[datetime], int], Callable[[datetime], str]]]] = {
    "hour": (_next_hour, lambda at: f"{at:%Y-%m-%d %H:00}"),
    "day": (_next_day, lambda at: f"{at:%Y-%m-%d}"),
    "week": (_next_week, _monday),
    "month": (_next_month, lambda at: f"{at:%Y-%m}"),
    "hour_of_day": (_next_hour, lambda at: f"{at:%H:00}"),
    "weekday": (_next_day, lambda at: f"{at.isoweekday()} {at:%A}"),
}
TIME_DIMENSIONS: Final = tuple(_CALENDARS)
"""A week is named by its Monday."""
RECURRING: Final = ("hour_of_day", "weekday")
"""The dimensions whose periods recur, so that two windows have the same ones."""
