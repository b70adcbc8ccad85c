"""Hours of the week that have a name, such as business hours, as people write and clocks show them."""

import re
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from typing import Final, NamedTuple

from gputally.model.units import to_us

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


_DAY: Final = f"(?:{'|'.join(_DAYS)})"


_RANGE: Final = rf"{_DAY}(?:-{_DAY})?"


_TIME: Final = r"\d{1,2}(?::\d\d)?"


_FORM: Final = re.compile(
    rf"(?:(?P<name>[^=]+)=)?(?P<days>{_RANGE}(?:,{_RANGE})*) +(?P<start>{_TIME})-(?P<end>{_TIME})", re.IGNORECASE
)


_HOUR: Final = 60


_DAY_MINUTES: Final = 24 * _HOUR


OTHER_HOURS: Final = "other"
"""The name of all hours that have no other one."""


class NamedHours(NamedTuple):
    """The minutes [start, end) of some `days` (0 is Monday); those that end before they start last to the next day."""

    name: str
    days: frozenset[int]
    start: int
    end: int

    def includes(self, at: datetime) -> bool:
        """Whether the clock shows one of these minutes."""
        minute, day = at.hour * _HOUR + at.minute, at.weekday()
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        return (day in self.days and minute >= self.start) or ((day - 1) % 7 in self.days and minute < self.end)


BUSINESS_HOURS: Final = (NamedHours("business", frozenset(range(5)), 9 * _HOUR, 17 * _HOUR),)
"""Monday to Friday from 9 to 17, unless a query says otherwise."""


def parse_hours(text: str) -> NamedHours:
    """Named hours; without a name, they are `business`. Raises: ValueError that says what is accepted."""
    match = _FORM.fullmatch(text.strip())
    start, end = (_minutes(match[each]) for each in ("start", "end")) if match else (0, 0)
    if not match or start == end or start >= _DAY_MINUTES or max(start, end) > _DAY_MINUTES:
        raise ValueError(
            f"'{text}' is not valid; use [NAME=]DAYS FROM-TO, such as 'Mon-Fri 9-17' or 'night=Sat 22-6:30'"
        )
    days = (day for part in match["days"].lower().split(",") for day in _days(part))
    return NamedHours((match["name"] or BUSINESS_HOURS[0].name).strip(), frozenset(days), start, end)


def _minutes(text: str) -> int:
    """Minutes since midnight; more than a day for a time that does not exist."""
    hour, _, minute = text.partition(":")
    return int(hour) * _HOUR + int(minute or 0) if int(minute or 0) < _HOUR else 2 * _DAY_MINUTES


def _days(text: str) -> Iterator[int]:
    first, _, last = text.partition("-")
    start = _DAYS.index(first)
    for count in range((_DAYS.index(last or first) - start) % 7 + 1):
        yield (start + count) % 7


def name_of(hours: tuple[NamedHours, ...], at: datetime) -> str:
    """The name of the first of `hours` that includes the time."""
    return next((each.name for each in hours if each.includes(at)), OTHER_HOURS)


def next_change(hours: tuple[NamedHours, ...], at: datetime) -> int:
    """The next time (µs) at which the name may change: one of their bounds, or a full hour, when clocks may change."""
    now_us = to_us(at)
    full = at.replace(minute=0, second=0, microsecond=0).timestamp()
    found = {int(full + 3600) * 1_000_000}
    for minutes in {bound % _DAY_MINUTES for each in hours for bound in (each.start, each.end)}:
        for day in (at.date(), at.date() + timedelta(days=1)):
            for fold in (0, 1):
                clock = time(minutes // _HOUR, minutes % _HOUR, fold=fold)
                found.add(to_us(datetime.combine(day, clock, at.tzinfo)))
    return min(each for each in found if each > now_us)
