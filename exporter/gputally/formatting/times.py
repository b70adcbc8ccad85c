"""Times in words: when, such as `2026-10-01 06:00:00 UTC`, how long, such as `2 h 5 min`, and how long ago."""

from datetime import datetime
from typing import Final

from gputally.model.units import to_datetime

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def instant(at: datetime) -> str:
    """The time to the second, in UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def iso(at: datetime) -> str:
    """The time in ISO 8601, as JSON has it: UTC is `Z`."""
    return at.isoformat().replace("+00:00", "Z")


def clock(at: datetime, *, now: datetime) -> str:
    """`09:10`, with the date if that is another day (UTC)."""
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%m-%d %H:%M}"


def accounted(until_us: int | None) -> str:
    """The time up to which a ledger is complete (µs), `not accounted yet` for None."""
    return "not accounted yet" if until_us is None else f"accounted until {instant(to_datetime(until_us))}"


def duration(seconds: float) -> str:
    """A duration in its two largest units: `45 s`, `14 min`, `2 h 5 min`, `3 d 4 h`; minutes alone from 10 on."""
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


def age(seconds: float) -> str:
    """The time that has passed since then, in its largest unit: `5 min ago`."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
