"""The time: clocks, and time zones by name."""

import time
from collections.abc import Callable
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Clock = Callable[[], int]
"""Microseconds since the epoch, UTC."""


def steady_clock() -> Clock:
    """A clock that starts at the system time and advances with the monotonic clock, unaffected by time changes."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (time.monotonic_ns() + offset_ns) // 1000


def system_clock() -> int:
    """The system time."""
    return time.time_ns() // 1000


def zone_named(name: str) -> tzinfo:
    """The time zone; UTC needs no database of zones. Raises: ValueError."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        text = f"unknown time zone '{name}'; use a name such as UTC, Europe/Berlin or America/New_York"
        raise ValueError(text) from None
