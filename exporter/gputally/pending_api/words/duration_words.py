"""Times and durations in words."""

from datetime import datetime
from typing import Final

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float) -> str:
    """In its two largest units: `45 s`, `14 min`, `2 h 5 min`, `3 d 4 h`; minutes alone from 10 on."""
    rest = max(0, round(seconds))
    parts: list[tuple[int, str]] = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append((count, unit))
    if not parts:
        return "0 s"
    [(first, unit), *others] = parts
    is_round = unit == "s" or (unit == "min" and first >= 10)  # noqa: PLR2004 - then seconds say nothing
    second = "" if is_round or not others or not others[0][0] else f" {others[0][0]} {others[0][1]}"
    return f"{first} {unit}{second}"


def clock(at: datetime, *, now: datetime) -> str:
    """`09:10`, with the date if that is another day (UTC)."""
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%m-%d %H:%M}"
