"""Simulated time: real monotonic time, scaled."""

import asyncio
import time


class SimClock:
    """Starts at `start_us` and runs `speed` times as fast as the wall; speed 1 is real time."""

    def __init__(self, start_us: int, speed: float = 1.0) -> None:
        if speed <= 0:
            raise ValueError(f"speed {speed} must be above 0")
        self.start_us = start_us
        self.speed = speed
        self._origin_ns = time.monotonic_ns()

    def now_us(self) -> int:
        """Microseconds since the epoch, UTC; never falls."""
        return self.start_us + int((time.monotonic_ns() - self._origin_ns) * self.speed / 1000)

    def skip_to(self, us: int) -> None:
        """Let the time until `us` be over at once."""
        self.start_us += max(0, us - self.now_us())

    def real_seconds_until(self, us: int) -> float:
        """How long the wall takes until it is `us` here; 0 when that has passed."""
        return max(0.0, (us - self.now_us()) / self.speed / 1_000_000)

    async def sleep_until(self, us: int) -> None:
        """Return once `now_us()` has reached `us`."""
        await asyncio.sleep(self.real_seconds_until(us))
