"""Maintains the ledger: checks it, adds up what ended and rolls the oldest up, slow enough not to delay anything."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Final

from gputally.aggregator.ledger_writer import LedgerWriter
from gputally.errors import LedgerDamaged, LedgerUnwritable
from gputally.model.health import ClosingHealth, LedgerHealth
from gputally.model.units import US_PER_DAY, to_datetime
from gputally.process.clock import Clock

logger = logging.getLogger(__name__)

CHECK_INTERVAL_SECONDS: Final = 86_400.0
"""Pause between two complete checks."""
CHECK_REST: Final = 19
"""Ratio of the pause after a step to the step's duration."""
_END: Final = object()
Check = Callable[[], Iterator[None]]
"""See `Ledger.check`."""
ROLL_UP_INTERVAL_SECONDS: Final = 3_600.0
"""Pause between two passes; those that find nothing are short."""
NONE_CLOSED_SECONDS: Final = 10.0
"""Pause while no closed period is known: after a start, these are read only once all events are accounted."""
ADD_UP_INTERVAL_SECONDS: Final = 3_600.0
"""Pause between two passes. What is not added up yet is only read slower."""
STEP_REST: Final = 9
"""Ratio of the pause after a step of either to the step's duration."""


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
        await asyncio.sleep(CHECK_INTERVAL_SECONDS)


async def _run_check(steps: Iterator[None]) -> None:
    result: object = None
    while result is not _END:
        started = time.monotonic()
        result = await asyncio.to_thread(next, steps, _END)
        await asyncio.sleep(CHECK_REST * (time.monotonic() - started))


async def keep_rolled_up(
    writer: LedgerWriter, *, retention_us: int, clock: Clock, closing: ClosingHealth | None = None
) -> None:
    """Forever: roll up what ended before the retention, by whole days (UTC).

    With `closing`, only closed periods are rolled up: how they divide days is known, and corrections stay exact.
    """
    while True:
        if closing and closing.last_end_us is None:
            await asyncio.sleep(NONE_CLOSED_SECONDS)
            continue
        before_us = clock() - retention_us
        if closing:
            before_us = min(before_us, closing.last_end_us or 0)
        await _roll_up(writer, before_us // US_PER_DAY * US_PER_DAY)
        await asyncio.sleep(ROLL_UP_INTERVAL_SECONDS)


async def _roll_up(writer: LedgerWriter, before_us: int) -> None:
    try:
        pods = await _run(writer, writer.ledger.roll_up(before_us))
    except LedgerUnwritable as error:
        logger.warning("%s; --ledger.retention continues later", error)
    else:
        if pods:
            before = f"{to_datetime(before_us):%Y-%m-%d}"
            logger.info("%d allocations that ended before %s are rolled up into daily rows", pods, before)


async def keep_added_up(writer: LedgerWriter) -> None:
    """Forever: store sums of the allocations that have ended, for reports."""
    while True:
        try:
            pods = await _run(writer, writer.ledger.add_up())
        except LedgerUnwritable as error:
            logger.warning("%s; sums for reports are stored later", error)
        else:
            logger.debug("%d allocations that have ended are added up for reports", pods)
        await asyncio.sleep(ADD_UP_INTERVAL_SECONDS)


async def _run(writer: LedgerWriter, steps: Iterator[int]) -> int:
    """Take all steps, each between two writes; returns of how many allocations they were."""
    pods = 0
    while True:
        started = time.monotonic()
        result = await writer.run_between(lambda: next(steps, _END))
        if not isinstance(result, int):
            return pods
        pods = result
        await asyncio.sleep(STEP_REST * (time.monotonic() - started))
