"""Doing something again and again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn


async def every(seconds: float, step: Callable[[], Awaitable[None]]) -> NoReturn:
    """For ever: a step every so many seconds, however long the last one took; none is made up for."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        await step()
        due = max(due + seconds, loop.time())
        await asyncio.sleep(due - loop.time())
