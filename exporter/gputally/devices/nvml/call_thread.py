"""A thread for calls that may hang: it is waited for only so long, and given nothing more until it comes back."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Hung(Exception):
    """The call has not come back, or the one before it."""


class CallThread:
    """One thread, `name`, that makes one call after the other. It does not keep the process from ending.

    concurrent.futures would: its executors join their threads at exit.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._current: Future[Any] | None = None
        threading.Thread(target=self._work, name=name, daemon=True).start()

    @property
    def is_busy(self) -> bool:
        """Whether a call is out."""
        return self._current is not None and not self._current.done()

    async def run(self, call: Callable[[], T], deadline_seconds: float) -> T:
        """What `call` returns or raises; Hung after the deadline, and at once while an earlier call is out."""
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
        """The thread ends after the call that is out."""
        self._jobs.put(None)

    def _work(self) -> None:
        while job := self._jobs.get():
            future, call = job
            if future.set_running_or_notify_cancel():
                _settle(future, call)
            del job, future, call  # what it returned is not kept until the next one


def _settle(future: "Future[T]", call: Callable[[], T]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001 - who waits for it raises it
        future.set_exception(error)
