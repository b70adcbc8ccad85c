"""When an API server responded, by its clock and by ours."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Answer(NamedTuple):
    """The Date header of a response ("" if it has none), and the monotonic times (µs) of request and response.

    `on_new_connection` if the response came on a connection of its own.
    """

    date: str
    asked_us: int
    came_us: int
    on_new_connection: bool = False


OnAnswer = Callable[[Answer], None]
"""Called with each response."""


def monotonic_us() -> int:
    """Microseconds of the monotonic clock."""
    return time.monotonic_ns() // 1000
