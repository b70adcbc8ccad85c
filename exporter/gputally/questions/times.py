"""Periods, times and time zones of a question: what is none, whatever a ledger accounts, is rejected at once."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Final

from gputally.ledger.records import Window
from gputally.model.units import to_us
from gputally.questions.ledger_question import LedgerQuestion
from gputally.questions.parameter import InvalidQuestion
from gputally.reports.windows import instant, parse_window

_LATE_US: Final = to_us(datetime(9000, 1, 1, tzinfo=UTC))
"""A present at which each period that begins in the past has begun."""


def check_times(question: LedgerQuestion, zone_named: Callable[[str], tzinfo]) -> None:
    """Raises: InvalidQuestion for an unknown zone, or a text that is no period or time at any present."""
    zone = zone_of(question.time_zone, zone_named)
    for parameter, text in question.periods.items():
        period_of(text, parameter, now_us=_LATE_US, zone=zone)
    if question.cut_off is not None:
        cut_off_us(question.cut_off, zone)


def zone_of(name: str, zone_named: Callable[[str], tzinfo]) -> tzinfo:
    """The zone of this name. Raises: InvalidQuestion."""
    try:
        return zone_named(name)
    except ValueError as error:
        raise InvalidQuestion("time_zone", str(error)) from None


def period_of(text: str, parameter: str, *, now_us: int, zone: tzinfo) -> Window:
    """The period of a parameter. Raises: InvalidQuestion."""
    try:
        return parse_window(text, now_us=now_us, zone=zone)
    except ValueError as error:
        raise InvalidQuestion(parameter, str(error)) from None


def cut_off_us(text: str, zone: tzinfo) -> int:
    """The time of a cut-off (µs). Raises: InvalidQuestion."""
    try:
        return instant(text, zone)
    except (ValueError, OverflowError):
        problem = f"'{text}' is not a time; use one such as 2026-10-15T06:00 or 2026-10-15T06:00:00Z"
        raise InvalidQuestion("cut_off", problem) from None
