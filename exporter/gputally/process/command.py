"""Run the process of a command: check what it needs, repeat its steps, and stop when asked to."""

import asyncio
import ctypes
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from gputally.errors import ConfigError, GputallyError, Problem

_OPTIONS: Final = (
    (-8, 1),  # M_ARENA_MAX: threads, such as those that write the ledger, share the memory of the main thread
    (-3, 2 << 20),  # M_MMAP_THRESHOLD: left alone, it grows with each larger buffer that is freed
    (-1, 4 << 20),  # M_TRIM_THRESHOLD: below the memory of a scrape, each scrape would allocate it again
)
"""Source: mallopt(3)."""


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


async def every(seconds: float, step: Callable[[], Awaitable[None]]) -> NoReturn:
    """Run `step` every `seconds` until cancelled. After a longer step, the next one starts at once."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        await step()
        due = max(due + seconds, loop.time())
        await asyncio.sleep(due - loop.time())


@contextmanager
def needing(remedy: str) -> Iterator[None]:
    """Import an optional dependency. Raises: ConfigError with the package and the `remedy`."""
    try:
        yield
    except ModuleNotFoundError as error:
        problem = Problem("", f"Python package {error.name}", f"is not installed; {remedy}")
        raise ConfigError([problem]) from None


def return_freed_memory() -> None:
    """Return large buffers, such as those of scrapes, as soon as they are freed; elsewhere than in glibc, do nothing.

    Call it before any thread starts.
    """
    library = ctypes.CDLL(None)
    for option, value in _OPTIONS if hasattr(library, "mallopt") else ():
        library.mallopt(option, value)
