"""Simulated time: scaled monotonic time."""

import asyncio
import time


class SimClock:
    """Starts at `start_us` and runs at `speed` times real time."""

    def __init__(self, start_us: int, speed: float = 1.0) -> None:
        if speed <= 0:
            raise ValueError(f"speed {speed} must be above 0")
        self.start_us = start_us
        self.speed = speed
        self._origin_ns = time.monotonic_ns()

    def now_us(self) -> int:
        """Microseconds since the epoch, UTC; monotonic."""
        return self.start_us + int((time.monotonic_ns() - self._origin_ns) * self.speed / 1000)

    def skip_to(self, us: int) -> None:
        """Jump forward to `us`."""
        self.start_us += max(0, us - self.now_us())

    def real_seconds_until(self, us: int) -> float:
        """Real seconds until the simulated time `us`; 0 if it has passed."""
        return max(0.0, (us - self.now_us()) / self.speed / 1_000_000)

    async def sleep_until(self, us: int) -> None:
        """Sleep until `now_us()` reaches `us`."""
        await asyncio.sleep(self.real_seconds_until(us))
