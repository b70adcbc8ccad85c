"""The API server's time, for all timestamps that the accounting treats as the API server's."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.errors import ApiError, ApiUnreachable
from gputally.model.health import ClockHealth
from gputally.model.units import US_PER_SECOND, to_us
from gputally.process.clock import Clock, system_clock

logger = logging.getLogger(__name__)
_DRIFT: Final = 2000
"""Two synchronised clocks drift apart by at most 1 µs in this many µs: Linux slews clocks by 500 ppm at most."""
STEP_US: Final = 2 * US_PER_SECOND
"""Smaller differences are no step: Dates have whole seconds, and synchronised servers differ by less."""
CONFIRMED_US: Final = 10 * US_PER_SECOND
"""The least time between two responses that together confirm a step."""
FIRST_US: Final = 2 * US_PER_SECOND
"""The least time between two responses that confirm the time at startup, when only the local wall clock differs."""
REQUEST_SECONDS: Final = 0.25
"""Interval of requests while the time is in doubt, short enough to reach both of two load-balanced servers soon."""


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


class Bounds(NamedTuple):
    """Bounds of server time minus monotonic time (µs), from responses up to `at_us` (monotonic)."""

    low_us: int
    high_us: int
    at_us: int

    def narrowed(self, by: "Bounds") -> "Bounds":
        """The intersection of both; `by` if they contradict each other."""
        both = self._intersection(by)
        return both if both.low_us <= both.high_us else by

    def contradicts(self, other: "Bounds") -> bool:
        """Whether a clock must have stepped between the two."""
        both = self._intersection(other)
        return both.low_us - both.high_us > STEP_US

    def excess(self, offset_us: int) -> int:
        """How far `offset_us` is above the bounds; negative below them, 0 within."""
        return offset_us - min(max(offset_us, self.low_us), self.high_us)

    def _intersection(self, by: "Bounds") -> "Bounds":
        slack_us = (by.at_us - self.at_us) // _DRIFT
        return Bounds(max(self.low_us - slack_us, by.low_us), min(self.high_us + slack_us, by.high_us), by.at_us)


class UnconfirmedTime(Struct):
    """A time reported by responses since `since_us` (monotonic) that is not confirmed yet."""

    bounds: Bounds
    since_us: int
    answers: int = 1


class ServerTime:
    """The local wall clock, while the Date headers of the server's responses allow it; else the latest time they allow.

    The latest, because a clock behind the server's would cap current timestamps. Between responses it follows the
    monotonic clock, so steps of the wall clock have no effect. It steps back only when it is proven to be ahead, and
    only as far as needed.

    One response alone never causes a step: behind a load balancer, one of several servers may have a wrong clock. A
    step needs confirmation by the local wall clock, or by a response on a new connection `CONFIRMED_US` later, if no
    response in between supports the old time. For the first response `FIRST_US` suffices. Until then the response is
    in doubt, and `doubted` is set.
    """

    def __init__(self, *, wall: Clock = system_clock, monotonic: Callable[[], int] = monotonic_us) -> None:
        self.health = ClockHealth()
        self.doubted = asyncio.Event()
        self._wall = wall
        self._monotonic = monotonic
        self._offset_us = wall() - monotonic()
        self._bounds: Bounds | None = None
        self._unconfirmed: UnconfirmedTime | None = None

    def now_us(self) -> int:
        """Microseconds since the epoch, UTC."""
        return self._monotonic() + self._offset_us

    def observe(self, answer: Answer) -> None:
        """Update the bounds: the server set Date, in whole seconds, between `asked_us` and `came_us`."""
        server_us = _instant(answer.date)
        if server_us is None:
            return
        reported = Bounds(server_us - answer.came_us, server_us + US_PER_SECOND - answer.asked_us, answer.came_us)
        if self._bounds and not self._bounds.contradicts(reported):
            self._accept(self._bounds.narrowed(reported))
        elif not self._wall_bounds(reported.at_us).contradicts(reported):
            self._accept(reported)
        elif confirmed := self._confirmed(reported, answer):
            self._accept(confirmed)

    def _accept(self, bounds: Bounds) -> None:
        if self._bounds and self._bounds.contradicts(bounds):
            logger.warning("the API server's clock was changed by %+d s", _seconds(self._bounds, bounds))
        if self._unconfirmed and self._unconfirmed.bounds.contradicts(bounds):
            self._reject(self._unconfirmed, bounds)
        self._unconfirmed = None
        self.doubted.clear()
        self._bounds = bounds
        wall_us = self._wall() - self._monotonic()
        self.health.skew_us = bounds.excess(wall_us)
        best_us = bounds.high_us if self.health.skew_us else wall_us
        self._offset_us = max(best_us, min(self._offset_us, bounds.high_us))

    def _confirmed(self, reported: Bounds, answer: Answer) -> Bounds | None:
        """The confirmed bounds of a time that nothing else supports; None while it is in doubt."""
        unconfirmed = self._unconfirmed
        if unconfirmed is None or unconfirmed.bounds.contradicts(reported):
            if unconfirmed:
                self._reject(unconfirmed, reported)
            self._unconfirmed = UnconfirmedTime(reported, reported.at_us)
            self.doubted.set()
            return None
        unconfirmed.bounds = unconfirmed.bounds.narrowed(reported)
        unconfirmed.answers += 1
        enough_us = CONFIRMED_US if self._bounds else FIRST_US
        return (
            unconfirmed.bounds
            if answer.on_new_connection and answer.asked_us - unconfirmed.since_us >= enough_us
            else None
        )

    def _reject(self, unconfirmed: UnconfirmedTime, bounds: Bounds) -> None:
        if not self.health.rejected:
            logger.warning(
                "a response of the API server was %+d s off and is rejected; check the clocks of its machines",
                _seconds(bounds, unconfirmed.bounds),
            )
        self.health.rejected += unconfirmed.answers

    def _wall_bounds(self, at_us: int) -> Bounds:
        wall_us = self._wall() - self._monotonic()
        return Bounds(wall_us, wall_us, at_us)


async def wait_until_confirmed(time: ServerTime, request: Callable[[], Awaitable[None]], *, patience_s: float) -> None:
    """Wait until no response is in doubt. Raises: ApiUnreachable if the servers do not agree within `patience_s`."""
    try:
        async with asyncio.timeout(patience_s):
            await _resolve_doubt(time, request)
    except TimeoutError:
        raise ApiUnreachable(
            f"the API server's responses and the local clock give contradictory times; gave up after "
            f"{patience_s:g} s, synchronise the clocks of the machines"
        ) from None


async def keep_confirmed(time: ServerTime, request: Callable[[], Awaitable[None]]) -> None:
    """Forever: request the server's time on new connections whenever it is in doubt."""
    while True:
        await time.doubted.wait()
        await _resolve_doubt(time, request)


async def _resolve_doubt(time: ServerTime, request: Callable[[], Awaitable[None]]) -> None:
    while time.doubted.is_set():
        await asyncio.sleep(REQUEST_SECONDS)
        with suppress(ApiError):
            await request()


def _seconds(was: Bounds, now: Bounds) -> int:
    """The seconds by which `now` is ahead of `was`."""
    return (now.high_us - was.high_us) // US_PER_SECOND


def _instant(date: str) -> int | None:
    """The time in a Date header; None if it is missing or not in the current format.

    Source: RFC 9110, section 5.6.7, IMF-fixdate.
    """
    try:
        return to_us(datetime.strptime(date, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC))
    except ValueError:
        return None
