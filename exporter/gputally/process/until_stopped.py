"""Runs the work of a command until it is done or the process is asked to stop."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from gputally.errors import GputallyError


def run_until_stopped(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Run `work` to its end, or until SIGINT, SIGTERM or a closed terminal (SIGHUP) asks it to end cleanly.

    Returns: the exit status 0.
    Raises: what `work` raises; of a group of errors that a user can fix, the first.
    """

    async def stoppable() -> None:
        task = asyncio.create_task(work(), name="main")
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(each, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            if not task.cancelling():
                raise  # not cancelled by a signal
        except BaseExceptionGroup as group:
            raise single_error(group) from None

    asyncio.run(stoppable())
    return 0


def single_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to report to the user, if the group contains only such errors; otherwise the group."""
    fixable, bugs = group.split((GputallyError, BrokenPipeError))
    if fixable is None or bugs:
        return group
    error: BaseException = fixable
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
