"""Recurring actions of scenarios, daily or on weekdays."""

from collections.abc import Callable
from functools import partial

from gputally_sim.agenda import Agenda
from gputally_sim.api.refusals import log_rejections
from gputally_sim.instants import DAY_US, HOUR_US

_MONDAY_BASED = 3  # 1970-01-01 was a Thursday
_SATURDAY = 5

Daily = Callable[[int], None]
"""An action; its argument is the number of the day since the epoch."""


def is_weekday(day: int) -> bool:
    """Monday to Friday."""
    return (day + _MONDAY_BASED) % 7 < _SATURDAY


def day_of(us: int) -> int:
    """The number of days since the epoch (UTC)."""
    return us // DAY_US


def is_working_time(us: int, begins: float, ends: float) -> bool:
    """Whether `us` is on a weekday between these hours."""
    return is_weekday(day_of(us)) and begins * HOUR_US <= us % DAY_US < ends * HOUR_US


def every_day(agenda: Agenda, hour: float, action: Daily) -> None:
    """Run `action` daily at `hour` (UTC), starting at the next such time."""
    day = day_of(agenda.now_us)
    first = day if day * DAY_US + hour * HOUR_US > agenda.now_us else day + 1
    agenda.at(first * DAY_US + int(hour * HOUR_US), partial(_recur, agenda, first, hour, action))


def every_weekday(agenda: Agenda, hour: float, action: Daily) -> None:
    """Run `action` at `hour` (UTC) from Monday to Friday."""
    every_day(agenda, hour, lambda day: action(day) if is_weekday(day) else None)


def _recur(agenda: Agenda, day: int, hour: float, action: Daily) -> None:
    with log_rejections():
        action(day)
    following = (day + 1) * DAY_US + int(hour * HOUR_US)
    agenda.at(following, partial(_recur, agenda, day + 1, hour, action))
