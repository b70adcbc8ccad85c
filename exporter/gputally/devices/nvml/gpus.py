"""All GPUs of the node, read at once: one that hangs, fails or is lost does not hold up the others."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeVar

from msgspec import Struct

from gputally.devices.nvml.call_thread import CallThread, Hung
from gputally.devices.nvml.gpu_reader import ReadOptions
from gputally.devices.nvml.gpu_worker import GpuWorker, Trouble
from gputally.devices.nvml.library import REMEDY, Handle, Nvml, Versions, load
from gputally.devices.nvml.retry import Retry
from gputally.devices.nvml.xids import Count, Xid, XidWatch
from gputally.errors import DriverChanged, DriverMissing, NvmlError, NvmlUnavailable
from gputally.model.measured.device import Reading

LOST_SECONDS: Final = 300.0
UNAVAILABLE_SECONDS: Final = 30.0
"""The longest pauses before a lost GPU is looked for again, and before NVML is initialised anew."""
logger = logging.getLogger(__name__)
T = TypeVar("T")


class Timeouts(Struct, frozen=True, kw_only=True):
    """How many seconds a reading of one GPU may take, and the start of NVML or of a GPU.

    The start takes half a minute where GPUs are many and the driver is not persistent.
    """

    read: float = 2.0
    start: float = 60.0


class Gpus:
    """The GPUs that this node's driver shows; made by `open`, inside the event loop that uses it.

    Errors of all: DriverChanged, DriverMissing: this process is to end. A GPU that is lost is looked for again, and
    NVML is initialised anew where it asks for that, both with back-off. `driver` tells the versions.
    """

    def __init__(self, nvml: Nvml, habits: ReadOptions, patience: Timeouts, clock: Callable[[], float]) -> None:
        self.driver = Versions(driver="", nvml="")
        self._nvml = nvml
        self._habits = habits
        self._patience = patience
        self._seats: list[GpuWorker] = []
        self._is_down = False
        self._lane = CallThread("nvml")
        self._now_us = habits.clock()
        """When GPUs were read last, from when on those that are found now are told of."""
        self._xids = XidWatch(nvml, habits.clock)
        self._heard: dict[str, Handle] = {}
        self._lost = Retry(clock, LOST_SECONDS)
        self._unavailable = Retry(clock, UNAVAILABLE_SECONDS)

    @classmethod
    async def open(
        cls,
        habits: ReadOptions,
        *,
        patience: Timeouts = Timeouts(),  # noqa: B008 - it is frozen
        nvml: Nvml | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Initialise NVML (pynvml's own, if `nvml` is None) and find the GPUs; `clock` tells seconds that only grow.

        Raises: NvmlError for no pynvml, DriverMissing for no library, driver or GPU, DriverChanged, NvmlUnavailable.
        """
        gpus = cls(nvml or load(), habits, patience, clock)
        try:
            await gpus._call(gpus._nvml.initialise)
            gpus.driver = await gpus._call(gpus._nvml.versions)
            await gpus._find(patience.start)
        except BaseException:
            await gpus.close()
            raise
        return gpus

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def read_all(self, now_us: int) -> list[Reading | Trouble]:
        """One for each GPU that was ever seen, in no particular order; `now_us` is the node's clock.

        It takes as long as the slowest GPU, at most `patience.read` unless NVML is initialised anew.
        """
        self._now_us = now_us
        await self._mend()
        reads = (seat.read(now_us, self._patience.read) for seat in self._seats)
        outcome = await asyncio.gather(*reads)
        self._listen()
        self._judge()
        return outcome

    def xids(self) -> Mapping[Xid, Count]:
        """By (UUID, XID) how often it came since this process began, and when last (µs since the epoch)."""
        return self._xids.counts()

    def hangs(self) -> Mapping[str, int]:
        """By UUID how many calls did not come back in time."""
        return {seat.uuid: seat.hangs for seat in self._seats if seat.hangs}

    async def close(self) -> None:
        """Give back what the driver lent, and end NVML, unless a call is out; takes some seconds at most."""
        await self._quiet()
        self._xids.close()
        for seat in self._seats:
            seat.close()
        self._lane.close()

    async def _find(self, patience_seconds: float) -> None:
        """Take up all GPUs that are there now, besides those known; DriverMissing for none at all."""
        count = await self._call(partial(self._nvml.demand, self._nvml.calls.nvmlDeviceGetCount))
        if not count and not self._seats:
            raise DriverMissing(f"the NVIDIA driver shows no GPU; {REMEDY}")
        known = {seat.uuid: seat for seat in self._seats if seat.uuid}
        found = [GpuWorker(self._nvml, index, self._habits, self._now_us) for index in range(count)]
        await asyncio.gather(*(seat.identify(patience_seconds) for seat in found))
        new = [seat for seat in found if seat.uuid not in known][: max(0, count - len(known))]
        for seat in (*self._seats, *found):
            if seat not in new and seat is not known.get(seat.uuid):
                seat.close()
        self._seats = [*known.values(), *new]
        await self._open(patience_seconds)

    async def _open(self, patience_seconds: float) -> None:
        """Begin to read those that are not read."""
        await asyncio.gather(*(seat.open(patience_seconds) for seat in self._seats))
        self._listen()

    def _listen(self) -> None:
        """To the XIDs of those that are new too. Of one that was lost the last ones may still come."""
        handles = {seat.uuid: seat.reader.handle for seat in self._seats if seat.reader}
        if any(self._heard.get(uuid) is not handle for uuid, handle in handles.items()):
            self._heard = handles
            self._xids.watch(handles)

    async def _mend(self) -> None:
        """What is due: look for the lost, or initialise NVML anew, in the end for the lost ones' sake too."""
        if self._unavailable.take():
            await self._begin_anew()
        elif self._lost.take():
            await (self._begin_anew() if self._lost.is_longest else self._open(self._patience.read))

    async def _begin_anew(self) -> None:
        """Even while a call is out: to initialise twice does no harm, but not at all would."""
        self._is_down = True
        await self._quiet()
        try:
            await self._call(self._nvml.initialise)
            await self._find(self._patience.read)
        except (DriverChanged, DriverMissing):
            raise
        except NvmlError as error:
            logger.warning("NVML cannot be initialised: %s", error)
        else:
            self._is_down = False
            logger.info("NVML was initialised again")

    async def _quiet(self) -> None:
        """Shut NVML down; not while a call is out, for what that would then do is not known."""
        await asyncio.gather(*(seat.drop(self._patience.read) for seat in self._seats))
        self._heard = {}
        self._xids.watch({})
        with suppress(Hung):
            settled = await self._lane.run(partial(self._xids.settle, self._patience.read), self._patience.read)
            if settled and not any(seat.is_busy for seat in self._seats):
                await self._lane.run(self._nvml.shut_down, self._patience.read)

    def _judge(self) -> None:
        if self._is_down or any(seat.is_unavailable for seat in self._seats):
            self._unavailable.want()
        else:
            self._unavailable.reset()
        if any(seat.reader is None for seat in self._seats):
            self._lost.want()
        else:
            self._lost.reset()

    async def _call(self, call: Callable[[], T]) -> T:
        """Of the driver as a whole; NvmlUnavailable where it does not come back."""
        try:
            return await self._lane.run(call, self._patience.start)
        except Hung:
            raise NvmlUnavailable(f"NVML does not respond within {self._patience.start:g} s") from None
