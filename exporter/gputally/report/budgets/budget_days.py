"""The days of a budget: what was spent on each, and those still to come."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta, tzinfo
from fractions import Fraction

from gputally.ledger.records import Window
from gputally.model.units import to_datetime
from gputally.report.bill import Line
from gputally.report.budgets.budget_forecast import MAX_DAYS, ComingDay, PastDay
from gputally.report.calendar.windows import day_window

Days = Mapping[str, int]
"""What was spent, by ISO date; nothing on other days."""


def days_of(lines: Iterable[Line], *, currency: str | None) -> Days:
    """The cost in this currency, or the GPU-time if it is None, of lines whose first label is their day."""
    found: dict[str, int] = {}
    for line in lines:
        value = line.gpu_time if currency is None else line.cost * (line.currency == currency)
        found[line.labels[0]] = found.get(line.labels[0], 0) + value
    return found


def running_total(days: Days, window: Window, *, zone: tzinfo) -> list[tuple[int, int]]:
    """What was spent from the start of the window, at its start and at the end (µs) of each of its days."""
    at_us, total = window.start_us, 0
    found = [(at_us, total)]
    while at_us < window.end_us:
        day = date_of(at_us, zone)
        total += days.get(day.isoformat(), 0)
        at_us = min(day_window(day, zone=zone).end_us, window.end_us)
        found.append((at_us, total))
    return found


def past_days(days: Days, window: Window, *, zone: tzinfo) -> list[PastDay]:
    """The full days in the accounted window before its last one, at most `MAX_DAYS`."""
    today = date_of(window.end_us, zone)
    candidates = (today - timedelta(days=before) for before in range(MAX_DAYS, 0, -1))
    return [
        PastDay(day.weekday(), days.get(day.isoformat(), 0))
        for day in candidates
        if day_window(day, zone=zone).start_us >= window.start_us
    ]


def first_past_us(now_us: int, *, zone: tzinfo) -> int:
    """When the first of the days begins that `past_days` can return."""
    return day_window(date_of(now_us, zone) - timedelta(days=MAX_DAYS), zone=zone).start_us


def coming_days(window: Window, *, zone: tzinfo) -> Iterator[ComingDay]:
    """The days of the window, of which the first may have begun."""
    at_us = window.start_us
    while at_us < window.end_us:
        day = date_of(at_us, zone)
        start_us, end_us = day_window(day, zone=zone)
        yield ComingDay(day.weekday(), Fraction(end_us - at_us, end_us - start_us), end_us)
        at_us = end_us


def date_of(at_us: int, zone: tzinfo) -> date:
    """The date of the instant in `zone`."""
    return to_datetime(at_us).astimezone(zone).date()
