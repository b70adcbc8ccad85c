"""The section `closing`: which periods are closed, and when."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from gputally.config.fields import Field, value, values
from gputally.config.values import choice
from gputally.model.periods import CALENDAR_FORMS, Closing, PeriodLength, days_of, named_days
from gputally.model.units import US_PER_DAY, US_PER_SECOND, seconds_of
from gputally.process.clock import zone_named

_LONGEST_US: Final = 90 * US_PER_DAY
_DEFAULT_US: Final = 3 * US_PER_DAY


def closing(field: Field) -> Closing | None:
    """What to close; invalid if `field` has problems."""
    section = field.section("period", "time_zone", "after", "closed")
    if field.sound and not ("period" in section or "closed" in section):
        field.refuse("closes nothing; add `period: month`, or `closed: [2026-10]`")
    if "after" in section and "period" not in section:
        section["after"].refuse("applies only with `period`; periods in `closed` close at their end")
    found = Closing(
        period=section.read("period", value(_length), None),
        zone=section.read("time_zone", value(_zone), "UTC"),
        after_us=section.read("after", value(_delay), _DEFAULT_US if "period" in section else 0),
        closed=section.read("closed", values(_period), ()),
    )
    if found.period and (other := [name for name in found.closed if not _is_one(name, found.period)]):
        section["closed"].refuse(f"{other[0]} is not a {found.period}; use periods of that length, or omit `period`")
    if overlap := _overlap(found.closed):
        section["closed"].refuse(f"{' and '.join(overlap)} overlap; remove one of them")
    return found


def _length(text: str) -> PeriodLength:
    return PeriodLength(choice([each.value for each in PeriodLength if each is not PeriodLength.YEAR])(text))


def _zone(text: str) -> str:
    try:
        zone_named(text)
    except ValueError:
        raise ValueError(f"unknown {text!r}; use a name such as UTC, Europe/Berlin or America/New_York") from None
    return text


def _delay(text: str) -> int:
    found_s = seconds_of(text)
    if found_s is None or found_s * US_PER_SECOND > _LONGEST_US:
        raise ValueError(f"{text!r} is not a duration up to 90d; use one such as 12h or 3d")
    return found_s * US_PER_SECOND


def _period(text: str) -> str:
    try:
        named_days(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a period; use {CALENDAR_FORMS}") from None
    return text


def _is_one(name: str, length: PeriodLength) -> bool:
    """Whether the named period is one of those that are closed on schedule: another one would hold these up."""
    return named_days(name) == days_of(length, named_days(name)[0])


def _overlap(names: Sequence[str]) -> tuple[str, str] | None:
    """Two periods that overlap."""
    ordered = sorted(names, key=named_days)
    found = (pair for pair in pairwise(ordered) if named_days(pair[1])[0] < named_days(pair[0])[1])
    return next(found, None)
