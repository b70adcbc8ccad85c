"""One GPU's worker: its thread, whose calls may hang, its reader if open, and its current trouble."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from enum import StrEnum
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from msgspec import Struct

from gputally.devices.nvml.gpu_reader import GpuReader, ReadOptions, uuid_at
from gputally.devices.nvml.library import Nvml
from gputally.errors import DriverChanged, DriverMissing, GpuLost, NvmlError, NvmlUnavailable
from gputally.model.devices import Reading

T = TypeVar("T")
logger = logging.getLogger(__name__)


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


class TroubleReason(StrEnum):
    """Why a GPU was not read."""

    LOST = "lost"
    """The GPU fell off the bus or requires a reset."""
    HUNG = "hung"
    """A call has not returned."""
    FAILED = "failed"
    """NVML returned an error; NVML is reinitialised if that may help."""


class Trouble(Struct, frozen=True, kw_only=True, gc=False):
    """GPU `uuid` ("" if never read) was not read; `text` is the driver's error message."""

    uuid: str
    reason: TroubleReason
    text: str = ""


class GpuWorker:
    """Reads the GPU that had `index` at discovery. Utilisation starts at `since_us`.

    All methods may raise DriverChanged and DriverMissing. Other errors are recorded in `trouble`.
    """

    def __init__(self, nvml: Nvml, index: int, options: ReadOptions, since_us: int) -> None:
        self.uuid = ""
        self.hangs = 0
        self.trouble: Trouble | None = None
        self.is_unavailable = False
        self.reader: GpuReader | None = None
        self._nvml = nvml
        self._index = index
        self._options = options
        self._since_us = since_us
        self._thread = CallThread(f"nvml {index}")
        self._missed = False

    @property
    def is_busy(self) -> bool:
        """Whether a call is in progress."""
        return self._thread.is_busy

    async def identify(self, deadline_seconds: float) -> None:
        """Query the UUID."""
        self.uuid = await self._run(partial(uuid_at, self._nvml, self._index), deadline_seconds) or ""

    async def open(self, deadline_seconds: float) -> None:
        """Open a reader unless one is open or a call is in progress."""
        if not self.reader and not self.is_busy:
            await self._run(self._open_reader, deadline_seconds)

    async def read(self, now_us: int, deadline_seconds: float) -> Reading | Trouble:
        """Read the GPU. Utilisation of a failed reading is included in the next one."""
        reader = self.reader
        if reader is None:
            return self.trouble or self._record(TroubleReason.FAILED, "not found yet")
        reading = await self._run(partial(reader.read, now_us, again=self._missed), deadline_seconds)
        self._missed = reading is None
        if reading:
            self._since_us = reader.until_us
            return reading
        assert self.trouble
        if self.trouble.reason is TroubleReason.LOST:
            await self.drop(deadline_seconds)
        return self.trouble

    async def drop(self, deadline_seconds: float) -> None:
        """Drop the reader. Release its driver resources unless a call is in progress."""
        reader, self.reader = self.reader, None
        if reader and not self.is_busy:
            with suppress(Hung):
                await self._thread.run(reader.close, deadline_seconds)

    def close(self) -> None:
        """Stop the thread."""
        self._thread.close()

    def _open_reader(self) -> None:
        """Open the reader. Runs in the thread: if it exceeds the deadline, the reader is set once it finishes."""
        self.reader = GpuReader(
            self._nvml, self.uuid or uuid_at(self._nvml, self._index), self._options, self._since_us
        )
        self.uuid = self.reader.gpu.uuid

    async def _run(self, call: Callable[[], T], deadline_seconds: float) -> T | None:
        """Run `call`. Returns None and records the trouble if it fails."""
        self.is_unavailable = False
        is_new = not self.is_busy
        try:
            answer = await self._thread.run(call, deadline_seconds)
        except Hung:
            self.hangs += is_new
            self._record(TroubleReason.HUNG, "the driver does not respond")
        except (DriverChanged, DriverMissing):
            raise
        except NvmlError as error:
            self.is_unavailable = isinstance(error, NvmlUnavailable)
            self._record(TroubleReason.LOST if isinstance(error, GpuLost) else TroubleReason.FAILED, str(error))
        except Exception as error:
            if self.trouble is None:
                logger.exception("GPU %s cannot be read because of a bug in gputally", self.uuid or self._index)
            self._record(TroubleReason.FAILED, repr(error))  # one GPU never stops the others
        else:
            self.trouble = None
            return answer
        return None

    def _record(self, reason: TroubleReason, text: str) -> Trouble:
        """Record the trouble, and log it when its reason changes."""
        if self.trouble is None or self.trouble.reason is not reason:
            logger.warning("GPU %s cannot be read: %s: %s", self.uuid or self._index, reason.value, text)
        self.trouble = Trouble(uuid=self.uuid, reason=reason, text=text)
        return self.trouble
