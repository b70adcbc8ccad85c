"""How long to wait before the next try."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 30.0


class Backoff:
    """Exponential with full jitter: a fleet of clients that lost one server must not return in step.

    Source: Exponential Backoff and Jitter, AWS Architecture Blog; the bounds are client-go's for reflectors.
    """

    def __init__(
        self, random: Random | None = None, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self.random = random or Random()  # noqa: S311 - spreads load, guards nothing
        self._sleep = sleep
        self._ceiling = FIRST_SECONDS

    async def wait(self, at_least_seconds: float = 0.0) -> None:
        """Sleep; the ceiling doubles. What the server asked for comes first, jitter on top of it."""
        delay = at_least_seconds + self.random.uniform(0, self._ceiling)
        self._ceiling = min(2 * self._ceiling, LONGEST_SECONDS)
        await self._sleep(delay)

    def reset(self) -> None:
        """Things go forward: the next wait is a short one."""
        self._ceiling = FIRST_SECONDS
