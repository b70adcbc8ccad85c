"""Where time comes from."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Microseconds since the epoch, UTC."""


def steady_clock() -> Clock:
    """A clock that nobody sets: the machine's time as it is now, counted on by its monotonic clock."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (time.monotonic_ns() + offset_ns) // 1000


def system_clock() -> int:
    """The machine's clock."""
    return time.time_ns() // 1000
