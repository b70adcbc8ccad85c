"""Waiting for a condition, never for a time."""

import asyncio
from collections.abc import Callable
from typing import Final

PATIENCE_SECONDS: Final = 20
"""No test waits this long; it turns a hang into a failure."""


async def until(condition: Callable[[], object]) -> None:
    """Return once `condition` holds; everything else in the loop goes on meanwhile."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - what is waited for sends no signal
            await asyncio.sleep(0.001)
