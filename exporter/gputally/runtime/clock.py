"""Where time comes from."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Microseconds since the epoch, UTC."""


def system_clock() -> int:
    """The machine's clock."""
    return time.time_ns() // 1000
