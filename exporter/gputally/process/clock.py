"""Clocks: functions that return the current time."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Microseconds since the epoch, UTC."""


def steady_clock() -> Clock:
    """A clock that starts at the system time and advances with the monotonic clock, unaffected by time changes."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (time.monotonic_ns() + offset_ns) // 1000


def system_clock() -> int:
    """The system time."""
    return time.time_ns() // 1000
