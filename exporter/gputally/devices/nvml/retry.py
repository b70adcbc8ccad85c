"""Retry times with exponential backoff; the first retry is never immediate."""

from collections.abc import Callable
from typing import Final

FIRST_SECONDS: Final = 1.0


class Retry:
    """The delay doubles up to `longest_seconds`; `clock` returns monotonic seconds.

    There is no jitter, because nothing else waits for this node's driver.
    """

    def __init__(self, clock: Callable[[], float], longest_seconds: float) -> None:
        self._clock = clock
        self._longest = longest_seconds
        self._delay = FIRST_SECONDS
        self._due_at: float | None = None

    @property
    def is_longest(self) -> bool:
        """Whether the delay has reached its maximum."""
        return self._delay >= self._longest

    def want(self) -> None:
        """Schedule a retry after a failure, unless one is scheduled."""
        if self._due_at is None:
            self._due_at = self._clock() + self._delay

    def take(self) -> bool:
        """Whether to retry now; if so, double the next delay."""
        if self._due_at is None or self._clock() < self._due_at:
            return False
        self._due_at = None
        self._delay = min(2 * self._delay, self._longest)
        return True

    def reset(self) -> None:
        """Cancel the retry after a success, and start again from the shortest delay."""
        self._due_at = None
        self._delay = FIRST_SECONDS
