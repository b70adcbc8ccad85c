"""The API server's time, for all timestamps the accounting believes are the API server's."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.errors import ApiError, ApiUnreachable
from gputally.kube.answer import Answer, monotonic_us
from gputally.model.health import ClockHealth
from gputally.model.units import US_PER_SECOND, to_us
from gputally.process.clock import Clock, system_clock

logger = logging.getLogger(__name__)

_DRIFT: Final = 2000
"""Two clocks that are kept in step part by at most 1 µs in so many: Linux slews a clock by 500 ppm, no more."""
STEP_US: Final = 2 * US_PER_SECOND
"""What differs by less is no step: Dates are cut to the second, and servers with time servers differ by less."""
CONFIRMED_US: Final = 10 * US_PER_SECOND
"""How far apart the answers must be that together prove a step."""
FIRST_US: Final = 2 * US_PER_SECOND
"""The same at the start, when nothing but our wall clock speaks against them."""
ASK_SECONDS: Final = 0.25
"""How often a server is asked for its time while that is in doubt: of two behind a load balancer, both answer soon."""


class Bounds(NamedTuple):
    """What server minus monotonic time (µs) must lie between, as proven by answers up to `at_us` (monotonic)."""

    low_us: int
    high_us: int
    at_us: int

    def narrowed(self, by: "Bounds") -> "Bounds":
        """What both allow. If they contradict each other, `by` alone counts."""
        both = self._intersection(by)
        return both if both.low_us <= both.high_us else by

    def contradicts(self, other: "Bounds") -> bool:
        """Whether a clock must have stepped between both."""
        both = self._intersection(other)
        return both.low_us - both.high_us > STEP_US

    def excess(self, offset_us: int) -> int:
        """By how much `offset_us` lies above the bounds; negative below them, 0 within."""
        return offset_us - min(max(offset_us, self.low_us), self.high_us)

    def _intersection(self, by: "Bounds") -> "Bounds":
        slack_us = (by.at_us - self.at_us) // _DRIFT
        return Bounds(max(self.low_us - slack_us, by.low_us), min(self.high_us + slack_us, by.high_us), by.at_us)


class Doubt(Struct):
    """A time that answers gave since `since_us` (monotonic), and that nobody else has confirmed yet."""

    bounds: Bounds
    since_us: int
    answers: int = 1


class ServerTime:
    """Our wall clock, as long as the Date headers of the server's answers allow it; else the latest time they allow.

    The latest, for a clock behind the server's would cut timestamps of the present. Between answers only the monotonic
    clock moves it, so a step of the wall clock changes nothing. It falls only when it is proven to be ahead, and no
    farther than that.

    One answer alone never makes it step, for behind a load balancer one server of several may have a wrong clock. It
    takes a second witness: our wall clock, or an answer on another connection `CONFIRMED_US` later, if none in between
    spoke for the time as it was. So it is with the first answer, `FIRST_US` later. Until then the answer is in doubt,
    and `doubted` is set.
    """

    def __init__(self, *, wall: Clock = system_clock, monotonic: Callable[[], int] = monotonic_us) -> None:
        self.health = ClockHealth()
        self.doubted = asyncio.Event()
        self._wall = wall
        self._monotonic = monotonic
        self._offset_us = wall() - monotonic()
        self._bounds: Bounds | None = None
        self._doubt: Doubt | None = None

    def now_us(self) -> int:
        """Microseconds since the epoch, UTC."""
        return self._monotonic() + self._offset_us

    def answered(self, answer: Answer) -> None:
        """Learn from an answer of the server, which wrote its Date between question and answer, cut to the second."""
        server_us = _instant(answer.date)
        if server_us is None:
            return
        told = Bounds(server_us - answer.came_us, server_us + US_PER_SECOND - answer.asked_us, answer.came_us)
        if self._bounds and not self._bounds.contradicts(told):
            self._believe(self._bounds.narrowed(told))
        elif not self._wall_bounds(told.at_us).contradicts(told):
            self._believe(told)
        elif confirmed := self._confirmed(told, answer):
            self._believe(confirmed)

    def _believe(self, bounds: Bounds) -> None:
        if self._bounds and self._bounds.contradicts(bounds):
            logger.warning("the API server's clock was changed by %+d s", _seconds(self._bounds, bounds))
        if self._doubt and self._doubt.bounds.contradicts(bounds):
            self._reject(self._doubt, bounds)
        self._doubt = None
        self.doubted.clear()
        self._bounds = bounds
        wall_us = self._wall() - self._monotonic()
        self.health.skew_us = bounds.excess(wall_us)
        best_us = bounds.high_us if self.health.skew_us else wall_us
        self._offset_us = max(best_us, min(self._offset_us, bounds.high_us))

    def _confirmed(self, told: Bounds, answer: Answer) -> Bounds | None:
        """What is proven of a time that nothing else speaks for; None as long as it is in doubt."""
        doubt = self._doubt
        if doubt is None or doubt.bounds.contradicts(told):
            if doubt:
                self._reject(doubt, told)
            self._doubt = Doubt(told, told.at_us)
            self.doubted.set()
            return None
        doubt.bounds = doubt.bounds.narrowed(told)
        doubt.answers += 1
        enough_us = CONFIRMED_US if self._bounds else FIRST_US
        return doubt.bounds if answer.is_apart and answer.asked_us - doubt.since_us >= enough_us else None

    def _reject(self, doubt: Doubt, bounds: Bounds) -> None:
        if not self.health.rejected:
            logger.warning(
                "a response of the API server was %+d s off and is rejected; check the clocks of its machines",
                _seconds(bounds, doubt.bounds),
            )
        self.health.rejected += doubt.answers

    def _wall_bounds(self, at_us: int) -> Bounds:
        wall_us = self._wall() - self._monotonic()
        return Bounds(wall_us, wall_us, at_us)


async def agreed(time: ServerTime, ask: Callable[[], Awaitable[None]], *, patience_s: float) -> None:
    """Return once no answer is in doubt. Raises: ApiUnreachable when the servers do not agree within `patience_s`."""
    try:
        async with asyncio.timeout(patience_s):
            await _settle(time, ask)
    except TimeoutError:
        raise ApiUnreachable(
            f"the API server's responses and the local clock give contradictory times; gave up after "
            f"{patience_s:g} s, synchronise the clocks of the machines"
        ) from None


async def keep_agreed(time: ServerTime, ask: Callable[[], Awaitable[None]]) -> None:
    """For ever: let the server say again what time it is, on another connection, whenever that is in doubt."""
    while True:
        await time.doubted.wait()
        await _settle(time, ask)


async def _settle(time: ServerTime, ask: Callable[[], Awaitable[None]]) -> None:
    while time.doubted.is_set():
        await asyncio.sleep(ASK_SECONDS)
        with suppress(ApiError):
            await ask()


def _seconds(was: Bounds, now: Bounds) -> int:
    """How far the clock of `now` is ahead."""
    return (now.high_us - was.high_us) // US_PER_SECOND


def _instant(date: str) -> int | None:
    """The time in a Date header; None for one that is missing or is in none of today's forms.

    Source: RFC 9110, section 5.6.7, IMF-fixdate.
    """
    try:
        return to_us(datetime.strptime(date, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC))
    except ValueError:
        return None
