"""A thread for calls that may hang: callers wait up to a deadline, and further calls fail until a hung call returns."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Hung(Exception):
    """This call or an earlier one has not returned."""


class CallThread:
    """Thread `name` that runs one call at a time. It does not block process exit.

    Executors of concurrent.futures would: they join their threads at exit.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._current: Future[Any] | None = None
        threading.Thread(target=self._work, name=name, daemon=True).start()

    @property
    def is_busy(self) -> bool:
        """Whether a call is in progress."""
        return self._current is not None and not self._current.done()

    async def run(self, call: Callable[[], T], deadline_seconds: float) -> T:
        """Run `call`. Raises Hung at the deadline, or immediately if an earlier call is in progress."""
        if self.is_busy:
            raise Hung
        self._current = future = Future[T]()
        self._jobs.put((future, call))
        try:
            async with asyncio.timeout(deadline_seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Hung from None

    def close(self) -> None:
        """Stop the thread after the current call."""
        self._jobs.put(None)

    def _work(self) -> None:
        while job := self._jobs.get():
            future, call = job
            if future.set_running_or_notify_cancel():
                _complete(future, call)
            del job, future, call  # do not keep the result alive until the next call


def _complete(future: "Future[T]", call: Callable[[], T]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001 - the caller reraises it
        future.set_exception(error)
