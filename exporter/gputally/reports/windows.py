"""Periods as people name them: `today`, `7d`, `2026-10`, `last-month`, `2026-10-01/2026-10-15`."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

from gputally.ledger.records import Window
from gputally.model.periods import (
    Days,
    PeriodLength,
    day_of,
    days_of,
    month_of,
    named_days,
    quarter_of,
    week_of,
    year_of,
)
from gputally.model.units import US_PER_SECOND, seconds_of, to_datetime, to_us

FORMS: Final = (
    "today, yesterday, week, last-week, month, last-month, year, last-year, all, 12h, 7d, 4w, 2026, 2026-Q4, "
    "2026-10, 2026-10-31, or FROM/TO with dates or times such as 2026-10-01T06:00; FROM/ is up to now"
)
"""What `parse_window` accepts; a period without an end lasts to the cut-off."""


def parse_window(text: str, *, now_us: int, zone: tzinfo) -> Window:
    """The period `text`, seen at `now_us`; days, weeks (from Monday) and months are those of `zone`.

    Nothing starts before the epoch, as `all` does. Raises: ValueError that says what is accepted.
    """
    now = to_datetime(now_us).astimezone(zone)
    if text == "all":
        return Window(0, now_us)
    if length_s := seconds_of(text):
        return Window(max(0, now_us - length_s * US_PER_SECOND), now_us)
    if named := _NAMED.get(text):
        return days_window(named(now.date()), zone)
    try:
        return _from_to(text, now_us=now_us, zone=zone) if "/" in text else days_window(named_days(text), zone)
    except (ValueError, OverflowError):
        raise ValueError(f"'{text}' is not a period; use {FORMS}") from None


def _from_to(text: str, *, now_us: int, zone: tzinfo) -> Window:
    first, last = text.split("/")
    window = Window(instant(first, zone), instant(last, zone) if last else now_us)
    if window.start_us >= window.end_us:
        raise ValueError(text)
    return window


def instant(text: str, zone: tzinfo) -> int:
    """A time (µs). A date is its first moment; a time without an offset is of `zone`. Raises: ValueError."""
    instant = datetime.fromisoformat(text)
    return to_us(instant if instant.tzinfo else instant.replace(tzinfo=zone))


def _before(period: Callable[[date], Days]) -> Callable[[date], Days]:
    """The period before that of a day."""
    return lambda day: period(period(day)[0] - timedelta(days=1))


_NAMED: Final[dict[str, Callable[[date], Days]]] = {
    "today": day_of,
    "yesterday": _before(day_of),
    "week": week_of,
    "last-week": _before(week_of),
    "month": month_of,
    "last-month": _before(month_of),
    "year": year_of,
    "last-year": _before(year_of),
}


def budget_period(length: PeriodLength, *, at_us: int, zone: tzinfo) -> Window:
    """The period of a budget that contains the instant, by the calendar of `zone`."""
    return days_window(days_of(length, to_datetime(at_us).astimezone(zone).date()), zone)


def day_window(day: date, *, zone: tzinfo) -> Window:
    """The day by the calendar of `zone`; where clocks change, it has more or less than 24 hours."""
    return days_window(day_of(day), zone)


def previous(window: Window, *, zone: tzinfo) -> Window:
    """The period before `window`: the day, week, month, quarter or year before it, otherwise one as long as it."""
    first = to_datetime(window.start_us).astimezone(zone).date()
    length_us = window.end_us - window.start_us
    before = Window(window.start_us - length_us, window.start_us)
    for period in (day_of, week_of, month_of, quarter_of, year_of):
        if days_window(period(first), zone) == window:
            before = days_window(_before(period)(first), zone)
    return before


def equal_part(earlier: Window, *, of: Window, until_us: int) -> Window:
    """What to compare with a period that is complete only to `until_us`: the first hours of the earlier one, as many.

    All of it if the period is over.
    """
    if until_us >= of.end_us:
        return earlier
    return Window(earlier.start_us, min(earlier.end_us, earlier.start_us + max(0, until_us - of.start_us)))


def days_window(days: Days, zone: tzinfo) -> Window:
    """From the first midnight of these days in `zone` to the last."""
    first, after = (to_us(datetime.combine(day, time(), zone)) for day in days)
    return Window(first, after)
