"""When to try again what failed: later each time, and never at once."""

from collections.abc import Callable
from typing import Final

FIRST_SECONDS: Final = 1.0


class Retry:
    """The pause doubles up to `longest_seconds`; `clock` tells seconds that only ever grow.

    It has no jitter, as nobody else waits for this node's driver.
    """

    def __init__(self, clock: Callable[[], float], longest_seconds: float) -> None:
        self._clock = clock
        self._longest = longest_seconds
        self._pause = FIRST_SECONDS
        self._at: float | None = None

    @property
    def is_longest(self) -> bool:
        """Whether the pauses have reached their longest."""
        return self._pause >= self._longest

    def want(self) -> None:
        """Something failed; the pause begins, if it has not."""
        if self._at is None:
            self._at = self._clock() + self._pause

    def take(self) -> bool:
        """Whether to try now; if so, the next pause is twice as long."""
        if self._at is None or self._clock() < self._at:
            return False
        self._at = None
        self._pause = min(2 * self._pause, self._longest)
        return True

    def reset(self) -> None:
        """It goes well: nothing to try, and the next pause is a short one."""
        self._at = None
        self._pause = FIRST_SECONDS
