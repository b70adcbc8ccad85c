"""How long to wait before a retry."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 30.0


class Backoff:
    """Exponential backoff with full jitter, so that many clients do not retry a failed server at the same time.

    Source: Exponential Backoff and Jitter, AWS Architecture Blog; the bounds are client-go's for reflectors.
    """

    def __init__(
        self, random: Random | None = None, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self.random = random or Random()  # noqa: S311 - spreads load, guards nothing
        self._sleep = sleep
        self._ceiling = FIRST_SECONDS

    async def wait(self, at_least_seconds: float = 0.0) -> None:
        """Sleep for `at_least_seconds`, which the server requested, plus jitter; then double the ceiling."""
        delay = at_least_seconds + self.random.uniform(0, self._ceiling)
        self._ceiling = min(2 * self._ceiling, LONGEST_SECONDS)
        await self._sleep(delay)

    def reset(self) -> None:
        """Reset the ceiling after progress."""
        self._ceiling = FIRST_SECONDS
