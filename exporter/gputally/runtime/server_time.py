"""The API server's time, for all timestamps the accounting believes are the API server's."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from gputally.model.health import ClockHealth
from gputally.model.units import US_PER_SECOND, to_us
from gputally.runtime.clock import Clock, system_clock
from gputally.sources.api import monotonic_us

_DRIFT: Final = 2000
"""Two clocks that are kept in step part by at most 1 µs in so many: Linux slews a clock by 500 ppm, no more."""


class Bounds(NamedTuple):
    """What server minus monotonic time (µs) must lie between, as proven by answers up to `at_us` (monotonic)."""

    low_us: int
    high_us: int
    at_us: int

    def narrowed(self, by: "Bounds") -> "Bounds":
        """What both allow. If they contradict each other, the server's clock has stepped: `by` alone counts."""
        slack_us = (by.at_us - self.at_us) // _DRIFT
        both = Bounds(max(self.low_us - slack_us, by.low_us), min(self.high_us + slack_us, by.high_us), by.at_us)
        return both if both.low_us <= both.high_us else by

    def excess(self, offset_us: int) -> int:
        """By how much `offset_us` lies above the bounds; negative below them, 0 within."""
        return offset_us - min(max(offset_us, self.low_us), self.high_us)


class ServerTime:
    """Our wall clock, as long as the Date headers of the server's answers allow it; else the latest time they allow.

    The latest, for a clock behind the server's would cut timestamps of the present. Between answers only the monotonic
    clock moves it, so a step of the wall clock changes nothing. It falls only when it is proven to be ahead, and no
    farther than that.
    """

    def __init__(self, *, wall: Clock = system_clock, monotonic: Callable[[], int] = monotonic_us) -> None:
        self.health = ClockHealth()
        self._wall = wall
        self._monotonic = monotonic
        self._offset_us = wall() - monotonic()
        self._bounds: Bounds | None = None

    def now_us(self) -> int:
        """Microseconds since the epoch, UTC."""
        return self._monotonic() + self._offset_us

    def answered(self, date: str, sent_us: int, received_us: int) -> None:
        """Learn from an answer of the server: its Date header ("" if it has none), and when it was asked and came.

        The server wrote the header in between (both monotonic, µs) and cut it to the whole second.
        """
        server_us = _instant(date)
        if server_us is None:
            return
        fresh = Bounds(server_us - received_us, server_us + US_PER_SECOND - sent_us, received_us)
        bounds = self._bounds = self._bounds.narrowed(fresh) if self._bounds else fresh
        wall_us = self._wall() - self._monotonic()
        self.health.skew_us = bounds.excess(wall_us)
        best_us = bounds.high_us if self.health.skew_us else wall_us
        self._offset_us = max(best_us, min(self._offset_us, bounds.high_us))


def _instant(date: str) -> int | None:
    """The time in a Date header; None for one that is missing or is in none of today's forms.

    Source: RFC 9110, section 5.6.7, IMF-fixdate.
    """
    try:
        return to_us(datetime.strptime(date, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC))
    except ValueError:
        return None
