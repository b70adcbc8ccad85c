"""When an API server answered, by its clock and by ours."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Answer(NamedTuple):
    """An answer's Date header ("" if it has none), and the monotonic clock (µs) when it was asked for and came.

    `is_apart` when it came on a connection that no other answer came on.
    """

    date: str
    asked_us: int
    came_us: int
    is_apart: bool = False


Answered = Callable[[Answer], None]
"""Told of an answer."""


def monotonic_us() -> int:
    """Microseconds of a clock that no one sets."""
    return time.monotonic_ns() // 1000
