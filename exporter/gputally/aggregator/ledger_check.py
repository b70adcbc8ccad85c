"""Periodic integrity check of the ledger, slow enough not to delay anything else."""

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
"""Pause between two complete checks."""
REST: Final = 19
"""Ratio of the pause after a step to the step's duration."""
_END: Final = object()
Check = Callable[[], Iterator[None]]
"""See `Ledger.check`."""


async def keep_checked(check: Check, health: LedgerHealth, *, clock: Clock) -> None:
    """Forever: check the ledger. Damage is logged and exported; accounting continues.

    Stopping would lose new data. A person decides whether to restore a backup, which lacks everything since.
    """
    while True:
        try:
            await _run_check(check())
            health.checked_us, health.damaged = clock(), False
        except LedgerDamaged as error:
            health.damaged = True
            logger.error("%s; accounting continues: see docs/runbooks/GputallyLedgerDamaged.md", error)  # noqa: TRY400 - no traceback needed
        except LedgerUnwritable as error:
            logger.warning("%s; the check is repeated later", error)
        await asyncio.sleep(INTERVAL_SECONDS)


async def _run_check(steps: Iterator[None]) -> None:
    result: object = None
    while result is not _END:
        started = time.monotonic()
        result = await asyncio.to_thread(next, steps, _END)
        await asyncio.sleep(REST * (time.monotonic() - started))
