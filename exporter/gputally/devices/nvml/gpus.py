"""Concurrent readings of all GPUs of the node: a hung, failed or lost GPU does not delay the others."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeVar

from msgspec import Struct

from gputally.devices.nvml.gpu_reader import ReadOptions
from gputally.devices.nvml.gpu_worker import CallThread, GpuWorker, Hung, Trouble
from gputally.devices.nvml.library import REMEDY, Handle, Nvml, Versions, load
from gputally.devices.nvml.xids import Count, Xid, XidWatch
from gputally.errors import DriverChanged, DriverMissing, NvmlError, NvmlUnavailable
from gputally.model.devices import Reading

FIRST_SECONDS: Final = 1.0
LOST_SECONDS: Final = 300.0
UNAVAILABLE_SECONDS: Final = 30.0
"""Maximum delays before reopening a lost GPU and before reinitialising NVML."""
logger = logging.getLogger(__name__)
T = TypeVar("T")


class Retry:
    """The delay doubles up to `longest_seconds`; `clock` returns monotonic seconds.

    There is no jitter, because nothing else waits for this node's driver.
    """

    def __init__(self, clock: Callable[[], float], longest_seconds: float) -> None:
        self._clock = clock
        self._longest = longest_seconds
        self._delay = FIRST_SECONDS
        self._due_at: float | None = None

    @property
    def is_longest(self) -> bool:
        """Whether the delay has reached its maximum."""
        return self._delay >= self._longest

    def want(self) -> None:
        """Schedule a retry after a failure, unless one is scheduled."""
        if self._due_at is None:
            self._due_at = self._clock() + self._delay

    def take(self) -> bool:
        """Whether to retry now; if so, double the next delay."""
        if self._due_at is None or self._clock() < self._due_at:
            return False
        self._due_at = None
        self._delay = min(2 * self._delay, self._longest)
        return True

    def reset(self) -> None:
        """Cancel the retry after a success, and start again from the shortest delay."""
        self._due_at = None
        self._delay = FIRST_SECONDS


class Timeouts(Struct, frozen=True, kw_only=True):
    """Time limits in seconds for reading one GPU, and for starting NVML or a GPU.

    A start takes half a minute on nodes with many GPUs and no driver persistence.
    """

    read: float = 2.0
    start: float = 60.0


class Gpus:
    """The GPUs that this node's driver reports. Create it with `open`, inside the event loop that uses it.

    All methods may raise DriverChanged and DriverMissing: the process must exit. Lost GPUs are reopened, and NVML is
    reinitialised when necessary, both with backoff. `driver` has the versions.
    """

    def __init__(self, nvml: Nvml, options: ReadOptions, patience: Timeouts, clock: Callable[[], float]) -> None:
        self.driver = Versions(driver="", nvml="")
        self._nvml = nvml
        self._options = options
        self._timeouts = patience
        self._workers: list[GpuWorker] = []
        self._is_down = False
        self._thread = CallThread("nvml")
        self._now_us = options.clock()
        """Time of the last reading. Utilisation of newly discovered GPUs starts here."""
        self._xids = XidWatch(nvml, options.clock)
        self._watched: dict[str, Handle] = {}
        self._lost_retry = Retry(clock, LOST_SECONDS)
        self._nvml_retry = Retry(clock, UNAVAILABLE_SECONDS)

    @classmethod
    async def open(
        cls,
        options: ReadOptions,
        *,
        patience: Timeouts = Timeouts(),  # noqa: B008 - it is frozen
        nvml: Nvml | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Initialise NVML (by default pynvml) and discover the GPUs; `clock` returns monotonic seconds.

        Raises NvmlError without pynvml, DriverMissing without library, driver or GPU, DriverChanged, NvmlUnavailable.
        """
        gpus = cls(nvml or load(), options, patience, clock)
        try:
            await gpus._call(gpus._nvml.initialise)
            gpus.driver = await gpus._call(gpus._nvml.versions)
            await gpus._discover(patience.start)
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
        """One result per GPU ever discovered, in no particular order; `now_us` is from the node's clock.

        Takes as long as the slowest GPU, at most `patience.read` unless NVML is reinitialised.
        """
        self._now_us = now_us
        await self._recover()
        reads = (worker.read(now_us, self._timeouts.read) for worker in self._workers)
        results = await asyncio.gather(*reads)
        self._watch_xids()
        self._schedule_retries()
        return results

    def xids(self) -> Mapping[Xid, Count]:
        """Count since process start and last time (µs since the epoch), by (UUID, XID)."""
        return self._xids.counts()

    def hangs(self) -> Mapping[str, int]:
        """Number of calls that timed out, by UUID."""
        return {worker.uuid: worker.hangs for worker in self._workers if worker.hangs}

    async def close(self) -> None:
        """Release driver resources and shut down NVML unless a call is in progress. Takes at most a few seconds."""
        await self._shut_down()
        self._xids.close()
        for worker in self._workers:
            worker.close()
        self._thread.close()

    async def _discover(self, deadline_seconds: float) -> None:
        """Add workers for new GPUs. Raises DriverMissing if there is no GPU at all."""
        count = await self._call(partial(self._nvml.demand, self._nvml.calls.nvmlDeviceGetCount))
        if not count and not self._workers:
            raise DriverMissing(f"the NVIDIA driver shows no GPU; {REMEDY}")
        known = {worker.uuid: worker for worker in self._workers if worker.uuid}
        found = [GpuWorker(self._nvml, index, self._options, self._now_us) for index in range(count)]
        await asyncio.gather(*(worker.identify(deadline_seconds) for worker in found))
        new = [worker for worker in found if worker.uuid not in known][: max(0, count - len(known))]
        for worker in (*self._workers, *found):
            if worker not in new and worker is not known.get(worker.uuid):
                worker.close()
        self._workers = [*known.values(), *new]
        await self._open(deadline_seconds)

    async def _open(self, deadline_seconds: float) -> None:
        """Open readers for all GPUs that have none."""
        await asyncio.gather(*(worker.open(deadline_seconds) for worker in self._workers))
        self._watch_xids()

    def _watch_xids(self) -> None:
        """Watch XIDs of new GPUs too. Keep watching lost GPUs: their last XIDs may still arrive."""
        handles = {worker.uuid: worker.reader.handle for worker in self._workers if worker.reader}
        if any(self._watched.get(uuid) is not handle for uuid, handle in handles.items()):
            self._watched = handles
            self._xids.watch(handles)

    async def _recover(self) -> None:
        """Run due retries: reopen lost GPUs, or reinitialise NVML, also if reopening keeps failing."""
        if self._nvml_retry.take():
            await self._reinitialise()
        elif self._lost_retry.take():
            await (self._reinitialise() if self._lost_retry.is_longest else self._open(self._timeouts.read))

    async def _reinitialise(self) -> None:
        """Reinitialise NVML, even during a call: a second initialisation is harmless, a missing one is not."""
        self._is_down = True
        await self._shut_down()
        try:
            await self._call(self._nvml.initialise)
            await self._discover(self._timeouts.read)
        except (DriverChanged, DriverMissing):
            raise
        except NvmlError as error:
            logger.warning("NVML cannot be initialised: %s", error)
        else:
            self._is_down = False
            logger.info("NVML was initialised again")

    async def _shut_down(self) -> None:
        """Shut NVML down, but not while a call is in progress: the effect on the call is undefined."""
        await asyncio.gather(*(worker.drop(self._timeouts.read) for worker in self._workers))
        self._watched = {}
        self._xids.watch({})
        patience = self._timeouts.read
        with suppress(Hung):
            applied = await self._thread.run(partial(self._xids.wait_until_applied, patience), patience)
            if applied and not any(worker.is_busy for worker in self._workers):
                await self._thread.run(self._nvml.shut_down, self._timeouts.read)

    def _schedule_retries(self) -> None:
        if self._is_down or any(worker.is_unavailable for worker in self._workers):
            self._nvml_retry.want()
        else:
            self._nvml_retry.reset()
        if any(worker.reader is None for worker in self._workers):
            self._lost_retry.want()
        else:
            self._lost_retry.reset()

    async def _call(self, call: Callable[[], T]) -> T:
        """Call NVML for the whole driver. Raises NvmlUnavailable on timeout."""
        try:
            return await self._thread.run(call, self._timeouts.start)
        except Hung:
            raise NvmlUnavailable(f"NVML does not respond within {self._timeouts.start:g} s") from None
