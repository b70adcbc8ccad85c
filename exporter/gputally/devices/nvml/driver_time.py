"""Between the clock that the driver stamps samples with and the one that readings are made by."""

from collections.abc import Callable
from typing import Final

JITTER_US: Final = 200_000
"""What two looks at two clocks may differ by, without either having been set."""


class DriverTime:
    """The driver stamps by the node's `clock` (µs), which may be set at any time; readings go by one that never is."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._ahead_us = 0

    def ahead_us(self, now_us: int) -> int:
        """By how much the driver's timestamps are ahead of `now_us`, the time of the reading."""
        found_us = self._clock() - now_us
        if abs(found_us - self._ahead_us) > JITTER_US:
            self._ahead_us = found_us
        return self._ahead_us
