"""Looking through the ledger, again and again, so slowly that nothing else is delayed."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Final

from gputally.errors import LedgerDamaged, LedgerUnwritable
from gputally.model.health import LedgerHealth
from gputally.process.clock import Clock

logger = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 86_400.0
"""From the end of one look at all of it until the next."""
REST: Final = 19
"""How many times as long as a step takes is rested after it."""
_END: Final = object()
Check = Callable[[], Iterator[None]]
"""See `Ledger.check`."""


async def keep_checked(check: Check, health: LedgerHealth, *, clock: Clock) -> None:
    """For ever: look through the ledger. Damage is logged and shown, and accounting goes on.

    What it adds would be lost else, and to restore a backup, which lacks what was accounted since, is for a person to
    decide.
    """
    while True:
        try:
            await _look_through(check())
            health.checked_us, health.damaged = clock(), False
        except LedgerDamaged as error:
            health.damaged = True
            logger.error("%s; accounting continues: see docs/runbooks/GputallyLedgerDamaged.md", error)  # noqa: TRY400 - said in words
        except LedgerUnwritable as error:
            logger.warning("%s; the check is repeated later", error)
        await asyncio.sleep(INTERVAL_SECONDS)


async def _look_through(steps: Iterator[None]) -> None:
    done: object = None
    while done is not _END:
        started = time.monotonic()
        done = await asyncio.to_thread(next, steps, _END)
        await asyncio.sleep(REST * (time.monotonic() - started))
