"""Offset between the driver's sample clock and the reading clock."""

from collections.abc import Callable
from typing import Final

JITTER_US: Final = 200_000
"""Tolerated change of the offset; a larger one means that the clock was set."""


class DriverTime:
    """The driver uses the node's `clock` (µs), which may be set at any time; readings use a clock that never is."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._offset_us = 0

    def ahead_us(self, now_us: int) -> int:
        """How far the driver's timestamps are ahead of `now_us`, the time of the reading."""
        offset_us = self._clock() - now_us
        if abs(offset_us - self._offset_us) > JITTER_US:
            self._offset_us = offset_us
        return self._offset_us
