"""XIDs, the driver's error events: counted in a thread that waits for those of all GPUs."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from gputally.devices.nvml.library import Handle, Nvml
from gputally.devices.nvml.mig_layout import address
from gputally.errors import NvmlError, NvmlUnavailable

WAIT_MS: Final = 1000
PAUSE_SECONDS: Final = 1.0
logger = logging.getLogger(__name__)

Xid = tuple[str, int]
"""The UUID of a GPU, and the number of the error."""
Count = tuple[int, int]
"""How often it came, and when last (µs)."""


class XidWatch:
    """Counts the XIDs of the GPUs it was last told to `watch`; what came before is lost, the driver keeps nothing.

    `clock` tells µs since the epoch.
    """

    def __init__(self, nvml: Nvml, clock: Callable[[], int]) -> None:
        self._nvml = nvml
        self._clock = clock
        self._counts: dict[Xid, Count] = {}
        self._wanted: Mapping[str, Handle] = {}
        self._told = threading.Event()
        self._turn = threading.Condition()
        self._asked = self._reached = 0
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="nvml xids", daemon=True)
        self._thread.start()

    def counts(self) -> Mapping[Xid, Count]:
        """Since this process began."""
        return dict(self._counts)

    def watch(self, handles: Mapping[str, Handle]) -> None:
        """From now on these GPUs, by UUID; takes effect within a second."""
        with self._turn:
            self._asked += 1
            self._wanted = handles
            self._told.set()

    def settle(self, seconds: float) -> bool:
        """Wait until `watch` took effect; whether it did. With no GPU, NVML may then be shut down."""
        with self._turn:
            return self._turn.wait_for(lambda: self._reached == self._asked, seconds)

    def close(self) -> None:
        """End; the thread follows within a second."""
        self._ending = True
        self.watch({})

    def _run(self) -> None:
        while not self._ending:
            self._told.wait()
            with self._turn:
                self._told.clear()
                wanted, asked = dict(self._wanted), self._asked
            while wanted and not self._told.is_set():
                self._follow(wanted, asked)
            self._reach(asked)
        self._reach(self._asked)

    def _reach(self, asked: int) -> None:
        with self._turn:
            self._reached = asked
            self._turn.notify_all()

    def _follow(self, wanted: dict[str, Handle], asked: int) -> None:
        """Until something else is wanted, or the set is of no more use; who cannot be registered is no longer wanted.

        Source: nvml.h, nvmlDeviceRegisterEvents: after an unknown error the set must be freed.
        """
        calls = self._nvml.calls
        events = None
        try:
            events = self._nvml.demand(calls.nvmlEventSetCreate)
            self._register(wanted, events)
            self._reach(asked)
            while not self._told.is_set():
                self._count(self._nvml.ask(calls.nvmlEventSetWait, events, WAIT_MS), wanted)
        except NvmlError as error:
            logger.info("waiting for XIDs again: %s", error)
            self._told.wait(PAUSE_SECONDS)
        finally:
            self._free(events)

    def _register(self, wanted: dict[str, Handle], events: object) -> None:
        calls = self._nvml.calls
        for uuid, handle in tuple(wanted.items()):
            try:
                kinds = self._nvml.demand(calls.nvmlDeviceGetSupportedEventTypes, handle)
                self._nvml.demand(
                    calls.nvmlDeviceRegisterEvents, handle, kinds & calls.nvmlEventTypeXidCriticalError, events
                )
            except NvmlError as error:
                logger.warning("GPU %s: XIDs are not counted: %s", uuid, error)
                del wanted[uuid]
                if isinstance(error, NvmlUnavailable):
                    raise

    def _count(self, event: Any, wanted: Mapping[str, Handle]) -> None:  # noqa: ANN401 - a structure of pynvml
        if event is None or event.eventType != self._nvml.calls.nvmlEventTypeXidCriticalError:
            return
        at = address(event.device)
        uuid = next((uuid for uuid, handle in wanted.items() if address(handle) == at), None)
        if uuid is None:
            uuid = self._nvml.ask(self._nvml.calls.nvmlDeviceGetUUID, event.device) or ""
        xid = (uuid, int(event.eventData))
        times, _ = self._counts.get(xid, (0, 0))
        self._counts[xid] = (times + 1, self._clock())

    def _free(self, events: object) -> None:
        if events is None:
            return
        try:
            self._nvml.ask(self._nvml.calls.nvmlEventSetFree, events)
        except NvmlError:  # NVML forgot the set, and us with it
            return
