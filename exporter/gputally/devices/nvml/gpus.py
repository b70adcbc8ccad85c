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

    def __init__(self, nvml: Nvml, options: ReadOptions, patience: Timeouts, clock: Callable[[], float]) -> None:
        self.driver = Versions(driver="", nvml="")
        self._nvml = nvml
        self._options = options
        self._timeouts = patience
        self._workers: list[GpuWorker] = []
        self._is_down = False
        self._lane = CallThread("nvml")
        self._now_us = options.clock()
        """When GPUs were read last, from when on those that are found now are told of."""
        self._xids = XidWatch(nvml, options.clock)
        self._heard: dict[str, Handle] = {}
        self._lost = Retry(clock, LOST_SECONDS)
        self._unavailable = Retry(clock, UNAVAILABLE_SECONDS)

    @classmethod
    async def open(
        cls,
        options: ReadOptions,
        *,
        patience: Timeouts = Timeouts(),  # noqa: B008 - it is frozen
        nvml: Nvml | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Initialise NVML (pynvml's own, if `nvml` is None) and find the GPUs; `clock` tells seconds that only grow.

        Raises: NvmlError for no pynvml, DriverMissing for no library, driver or GPU, DriverChanged, NvmlUnavailable.
        """
        gpus = cls(nvml or load(), options, patience, clock)
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
        reads = (worker.read(now_us, self._timeouts.read) for worker in self._workers)
        outcome = await asyncio.gather(*reads)
        self._listen()
        self._judge()
        return outcome

    def xids(self) -> Mapping[Xid, Count]:
        """By (UUID, XID) how often it came since this process began, and when last (µs since the epoch)."""
        return self._xids.counts()

    def hangs(self) -> Mapping[str, int]:
        """By UUID how many calls did not come back in time."""
        return {worker.uuid: worker.hangs for worker in self._workers if worker.hangs}

    async def close(self) -> None:
        """Give back what the driver lent, and end NVML, unless a call is out; takes some seconds at most."""
        await self._quiet()
        self._xids.close()
        for worker in self._workers:
            worker.close()
        self._lane.close()

    async def _find(self, patience_seconds: float) -> None:
        """Take up all GPUs that are there now, besides those known; DriverMissing for none at all."""
        count = await self._call(partial(self._nvml.demand, self._nvml.calls.nvmlDeviceGetCount))
        if not count and not self._workers:
            raise DriverMissing(f"the NVIDIA driver shows no GPU; {REMEDY}")
        known = {worker.uuid: worker for worker in self._workers if worker.uuid}
        found = [GpuWorker(self._nvml, index, self._options, self._now_us) for index in range(count)]
        await asyncio.gather(*(worker.identify(patience_seconds) for worker in found))
        new = [worker for worker in found if worker.uuid not in known][: max(0, count - len(known))]
        for worker in (*self._workers, *found):
            if worker not in new and worker is not known.get(worker.uuid):
                worker.close()
        self._workers = [*known.values(), *new]
        await self._open(patience_seconds)

    async def _open(self, patience_seconds: float) -> None:
        """Begin to read those that are not read."""
        await asyncio.gather(*(worker.open(patience_seconds) for worker in self._workers))
        self._listen()

    def _listen(self) -> None:
        """To the XIDs of those that are new too. Of one that was lost the last ones may still come."""
        handles = {worker.uuid: worker.reader.handle for worker in self._workers if worker.reader}
        if any(self._heard.get(uuid) is not handle for uuid, handle in handles.items()):
            self._heard = handles
            self._xids.watch(handles)

    async def _mend(self) -> None:
        """What is due: look for the lost, or initialise NVML anew, in the end for the lost ones' sake too."""
        if self._unavailable.take():
            await self._begin_anew()
        elif self._lost.take():
            await (self._begin_anew() if self._lost.is_longest else self._open(self._timeouts.read))

    async def _begin_anew(self) -> None:
        """Even while a call is out: to initialise twice does no harm, but not at all would."""
        self._is_down = True
        await self._quiet()
        try:
            await self._call(self._nvml.initialise)
            await self._find(self._timeouts.read)
        except (DriverChanged, DriverMissing):
            raise
        except NvmlError as error:
            logger.warning("NVML cannot be initialised: %s", error)
        else:
            self._is_down = False
            logger.info("NVML was initialised again")

    async def _quiet(self) -> None:
        """Shut NVML down; not while a call is out, for what that would then do is not known."""
        await asyncio.gather(*(worker.drop(self._timeouts.read) for worker in self._workers))
        self._heard = {}
        self._xids.watch({})
        with suppress(Hung):
            settled = await self._lane.run(partial(self._xids.settle, self._timeouts.read), self._timeouts.read)
            if settled and not any(worker.is_busy for worker in self._workers):
                await self._lane.run(self._nvml.shut_down, self._timeouts.read)

    def _judge(self) -> None:
        if self._is_down or any(worker.is_unavailable for worker in self._workers):
            self._unavailable.want()
        else:
            self._unavailable.reset()
        if any(worker.reader is None for worker in self._workers):
            self._lost.want()
        else:
            self._lost.reset()

    async def _call(self, call: Callable[[], T]) -> T:
        """Of the driver as a whole; NvmlUnavailable where it does not come back."""
        try:
            return await self._lane.run(call, self._timeouts.start)
        except Hung:
            raise NvmlUnavailable(f"NVML does not respond within {self._timeouts.start:g} s") from None
