"""Run a task periodically."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn


async def every(seconds: float, step: Callable[[], Awaitable[None]]) -> NoReturn:
    """Run `step` every `seconds` until cancelled. After a longer step, the next one starts at once."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        await step()
        due = max(due + seconds, loop.time())
        await asyncio.sleep(due - loop.time())
