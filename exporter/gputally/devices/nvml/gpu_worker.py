"""A GPU's place among the others: its own thread, its reader while there is one, and what is wrong with it."""

import logging
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import TypeVar

from msgspec import Struct

from gputally.devices.nvml.call_thread import CallThread, Hung
from gputally.devices.nvml.gpu_reader import GpuReader, ReadOptions, uuid_at
from gputally.devices.nvml.library import Nvml
from gputally.errors import DriverChanged, DriverMissing, GpuLost, NvmlError, NvmlUnavailable
from gputally.model.measured.device import Reading

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Reason(StrEnum):
    """Why a GPU was not read."""

    LOST = "lost"
    """It fell off the bus or waits for a reset."""
    HUNG = "hung"
    """A call has not come back."""
    FAILED = "failed"
    """NVML refused; it is initialised anew if that may help."""


class Trouble(Struct, frozen=True, kw_only=True, gc=False):
    """The GPU `uuid` ("" for one that has never told it) was not read; `text` says why, as the driver puts it."""

    uuid: str
    reason: Reason
    text: str = ""


class GpuWorker:
    """The GPU that was the `index`-th when it was found; its utilisation is told from `since_us` on.

    Errors of all: DriverChanged, DriverMissing. Others are noted as `trouble`.
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
        self._lane = CallThread(f"nvml {index}")
        self._missed = False

    @property
    def is_busy(self) -> bool:
        """Whether a call is out."""
        return self._lane.is_busy

    async def identify(self, deadline_seconds: float) -> None:
        """Learn the UUID."""
        self.uuid = await self._run(partial(uuid_at, self._nvml, self._index), deadline_seconds) or ""

    async def open(self, deadline_seconds: float) -> None:
        """Begin to read the GPU, if nobody does."""
        if not self.reader and not self.is_busy:
            await self._run(self._start, deadline_seconds)

    async def read(self, now_us: int, deadline_seconds: float) -> Reading | Trouble:
        """What the GPU tells. What it told when nobody listened any more it tells again."""
        reader = self.reader
        if reader is None:
            return self.trouble or self._note(Reason.FAILED, "not found yet")
        reading = await self._run(partial(reader.read, now_us, again=self._missed), deadline_seconds)
        self._missed = reading is None
        if reading:
            self._since_us = reader.until_us
            return reading
        assert self.trouble
        if self.trouble.reason is Reason.LOST:
            await self.drop(deadline_seconds)
        return self.trouble

    async def drop(self, deadline_seconds: float) -> None:
        """Give up the reader, and give back what the driver lent; not while a call is out."""
        reader, self.reader = self.reader, None
        if reader and not self.is_busy:
            with suppress(Hung):
                await self._lane.run(reader.close, deadline_seconds)

    def close(self) -> None:
        """End the thread."""
        self._lane.close()

    def _start(self) -> None:
        """In the thread: a start that took too long is found there when it has come to its end."""
        self.reader = GpuReader(
            self._nvml, self.uuid or uuid_at(self._nvml, self._index), self._options, self._since_us
        )
        self.uuid = self.reader.gpu.uuid

    async def _run(self, call: Callable[[], T], deadline_seconds: float) -> T | None:
        """What `call` returns, None with a note of what is wrong."""
        self.is_unavailable = False
        is_new = not self.is_busy
        try:
            answer = await self._lane.run(call, deadline_seconds)
        except Hung:
            self.hangs += is_new
            self._note(Reason.HUNG, "the driver does not respond")
        except (DriverChanged, DriverMissing):
            raise
        except NvmlError as error:
            self.is_unavailable = isinstance(error, NvmlUnavailable)
            self._note(Reason.LOST if isinstance(error, GpuLost) else Reason.FAILED, str(error))
        except Exception as error:
            if self.trouble is None:
                logger.exception("GPU %s cannot be read because of a bug in gputally", self.uuid or self._index)
            self._note(Reason.FAILED, repr(error))  # one GPU never takes the others down
        else:
            self.trouble = None
            return answer
        return None

    def _note(self, reason: Reason, text: str) -> Trouble:
        """It is said once, when it begins."""
        if self.trouble is None or self.trouble.reason is not reason:
            logger.warning("GPU %s cannot be read: %s: %s", self.uuid or self._index, reason.value, text)
        self.trouble = Trouble(uuid=self.uuid, reason=reason, text=text)
        return self.trouble
