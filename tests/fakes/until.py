"""Waits for a condition instead of a fixed time."""

import asyncio
from collections.abc import Callable
from typing import Final

PATIENCE_SECONDS: Final = 60
"""A timeout that only a hanging test reaches."""


async def until(condition: Callable[[], object]) -> None:
    """Wait until `condition` is true, while other tasks run."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - the condition sends no signal
            await asyncio.sleep(0.001)
