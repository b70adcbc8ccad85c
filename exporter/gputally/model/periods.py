"""Calendar periods as people name them, such as `2026-10-31`, `2026-10` or `2026-Q4`, and when they are closed."""

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

CALENDAR_FORMS: Final = "2026, 2026-Q4, 2026-10, 2026-10-31, or FROM/TO with two dates"
"""What `named_days` accepts."""
_NAMED: Final = re.compile(r"(?P<year>\d{4})(-Q(?P<quarter>[1-4])|-(?P<month>\d\d)(-(?P<day>\d\d))?)?")

Days = tuple[date, date]
"""[first day, day after the last)."""


class PeriodLength(StrEnum):
    """The length of periods that follow each other. Weeks begin on Monday."""

    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


def named_days(text: str) -> Days:
    """The days of a period. Raises: ValueError if it has no such name."""
    if "/" in text:
        first, after = map(date.fromisoformat, text.split("/"))
        if first >= after:
            raise ValueError(text)
        return first, after
    match = _NAMED.fullmatch(text)
    if not match:
        raise ValueError(text)
    if match["day"]:
        return day_of(date.fromisoformat(text))
    if match["quarter"]:
        return quarter_of(date(int(match["year"]), 3 * int(match["quarter"]), 1))
    if match["month"]:
        return month_of(date(int(match["year"]), int(match["month"]), 1))
    return year_of(date(int(match["year"]), 1, 1))


def name_of(days: Days) -> str:
    """The shortest name of these days among months, quarters, and FROM/TO."""
    first, after = days
    if days == month_of(first):
        return f"{first:%Y-%m}"
    if days == quarter_of(first):
        return f"{first.year}-Q{(first.month + 2) // 3}"
    return f"{first}/{after}"


def days_of(length: PeriodLength, day: date) -> Days:
    """The period of this length that contains `day`."""
    return _DAYS[length](day)


def day_of(day: date) -> Days:
    """The day itself."""
    return day, day + timedelta(days=1)


def week_of(day: date) -> Days:
    """Monday to Sunday."""
    monday = day - timedelta(days=day.weekday())
    return monday, monday + timedelta(weeks=1)


def month_of(day: date) -> Days:
    """The month of a day."""
    first = day.replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)


def quarter_of(day: date) -> Days:
    """The quarter of a day."""
    first = date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
    return first, (first + timedelta(days=95)).replace(day=1)


def year_of(day: date) -> Days:
    """The year of a day."""
    return date(day.year, 1, 1), date(day.year + 1, 1, 1)


_DAYS: Final[Mapping[PeriodLength, Callable[[date], Days]]] = {
    PeriodLength.WEEK: week_of,
    PeriodLength.MONTH: month_of,
    PeriodLength.QUARTER: quarter_of,
    PeriodLength.YEAR: year_of,
}


class Closing(Struct, frozen=True, kw_only=True, cache_hash=True):
    """The aggregator closes each period of length `period`, `after_us` (µs) after its end, and those in `closed`.

    `zone` is that of their calendar. The periods in `closed` do not overlap; they close at their end.
    """

    period: PeriodLength | None = None
    zone: str = "UTC"
    after_us: int = 0
    closed: tuple[str, ...] = ()
