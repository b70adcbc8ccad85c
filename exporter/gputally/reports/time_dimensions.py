"""Dimensions of time: days, weeks and months of a period, hours of the day, days of the week, and named hours."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

from gputally.ledger.records import Window
from gputally.model.units import US_PER_HOUR, to_datetime, to_us
from gputally.reports.named_hours import BUSINESS_HOURS, NamedHours, name_of, next_change

_Labels = tuple[Callable[[datetime], int], Callable[[datetime], str]]
"""The next change (µs) of a dimension, and its value at a time."""
_HOURS: Final = "hours"
_REPEATED_HOUR: Final = re.compile(r"(?P<hour>\d{4}-\d\d-\d\d \d\d:00)(?P<sign>[+-])(?P<hours>\d\d):(?P<minutes>\d\d)")


class Calendar(NamedTuple):
    """The zone of days and hours, and what hours have names."""

    zone: tzinfo = UTC
    hours: tuple[NamedHours, ...] = BUSINESS_HOURS


class Periods(NamedTuple):
    """`cuts` (µs) divide a window into periods, each with its value of every dimension of time.

    Different periods may have the same values, but not neighbours.
    """

    cuts: tuple[int, ...]
    values: tuple[Mapping[str, str], ...]

    def divided(self, cuts: Iterable[int]) -> "Periods":
        """The periods, each divided at those `cuts` that are inside it; the parts have its values."""
        every = tuple(sorted({*self.cuts, *cuts}))
        return Periods(every, (self.values[0], *(self.values[bisect_right(self.cuts, at_us)] for at_us in every)))


def periods_of(dimensions: Iterable[str], window: Window, calendar: Calendar) -> Periods:
    """The periods of a window by any of `TIME_DIMENSIONS`; without one, it is the only period."""
    chosen = {each: _labels_of(each, calendar) for each in dimensions}
    cuts, values, at_us = list[int](), list[Mapping[str, str]](), window.start_us
    while at_us < window.end_us or not values:
        at = to_datetime(at_us).astimezone(calendar.zone)
        found = {each: label(at) for each, (_, label) in chosen.items()}
        if not values or values[-1] != found:
            cuts += [at_us] if values else []
            values.append(found)
        at_us = min((advance(at) for advance, _ in chosen.values()), default=window.end_us)
    return Periods(tuple(cuts), tuple(values))


def _labels_of(dimension: str, calendar: Calendar) -> "_Labels":
    if dimension == _HOURS:
        return lambda at: next_change(calendar.hours, at), lambda at: name_of(calendar.hours, at)
    return _CALENDARS[dimension]


def in_order_of_time(value: str) -> tuple[str, int]:
    """Sorts values of a dimension of time; of two hours of one name, that with the larger offset from UTC is first."""
    if not (match := _REPEATED_HOUR.fullmatch(value)):
        return value, 0
    return match["hour"], -int(f"{match['sign']}1") * (60 * int(match["hours"]) + int(match["minutes"]))


def hours_of(window: Window, zone: tzinfo) -> Iterator[Window]:
    """The hours by the clocks of `zone` that overlap the window, whole; one that clocks cut short is shorter."""
    at = to_datetime(window.start_us).astimezone(zone)
    start_us, end_us = to_us(at) - _into_hour_us(at), _next_hour(at)
    while start_us < window.end_us:
        yield Window(start_us, end_us)
        start_us, end_us = end_us, _next_hour(to_datetime(end_us).astimezone(zone))


def _next_hour(at: datetime) -> int:
    """The next full hour of the clock; zones differ from UTC by quarters of an hour."""
    return to_us(at) - _into_hour_us(at) + US_PER_HOUR


def _into_hour_us(at: datetime) -> int:
    return (at.minute * 60 + at.second) * 1_000_000 + at.microsecond


def _hour(at: datetime) -> str:
    """The hour of a day, with its offset from UTC if clocks that are set back show it twice."""
    moments = (at.replace(minute=0, second=0, microsecond=0), at.replace(minute=59, second=59, microsecond=0))
    is_repeated = any(_offset(each, fold=0) > _offset(each, fold=1) for each in moments)
    return f"{at:%Y-%m-%d %H:00}{at.isoformat()[-6:] if is_repeated else ''}"


def _offset(at: datetime, *, fold: int) -> timedelta:
    return at.replace(fold=fold).utcoffset() or timedelta()


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


_CALENDARS: Final[Mapping[str, _Labels]] = {
    "hour": (_next_hour, _hour),
    "day": (_next_day, lambda at: f"{at:%Y-%m-%d}"),
    "week": (_next_week, _monday),
    "month": (_next_month, lambda at: f"{at:%Y-%m}"),
    "hour_of_day": (_next_hour, lambda at: f"{at:%H:00}"),
    "weekday": (_next_day, lambda at: f"{at.isoweekday()} {at:%A}"),
}
