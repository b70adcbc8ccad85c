"""Count XIDs, the driver's error events, in one thread for all GPUs."""

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
"""GPU UUID and error number."""
Count = tuple[int, int]
"""Number of events and time of the last one (µs)."""


class XidWatch:
    """Counts XIDs of the GPUs last passed to `watch`. Earlier XIDs are lost, because the driver does not store them.

    `clock` returns µs since the epoch.
    """

    def __init__(self, nvml: Nvml, clock: Callable[[], int]) -> None:
        self._nvml = nvml
        self._clock = clock
        self._counts: dict[Xid, Count] = {}
        self._wanted: Mapping[str, Handle] = {}
        self._changed = threading.Event()
        self._condition = threading.Condition()
        self._requested = self._applied = 0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="nvml xids", daemon=True)
        self._thread.start()

    def counts(self) -> Mapping[Xid, Count]:
        """Counts since process start."""
        return dict(self._counts)

    def watch(self, handles: Mapping[str, Handle]) -> None:
        """Watch only these GPUs, by UUID; takes effect within a second."""
        with self._condition:
            self._requested += 1
            self._wanted = handles
            self._changed.set()

    def wait_until_applied(self, seconds: float) -> bool:
        """Wait until `watch` takes effect; returns whether it did. If no GPU is watched, NVML may then be shut down."""
        with self._condition:
            return self._condition.wait_for(lambda: self._applied == self._requested, seconds)

    def close(self) -> None:
        """Stop; the thread exits within a second."""
        self._closing = True
        self.watch({})

    def _run(self) -> None:
        while not self._closing:
            self._changed.wait()
            with self._condition:
                self._changed.clear()
                wanted, generation = dict(self._wanted), self._requested
            while wanted and not self._changed.is_set():
                self._wait_for_events(wanted, generation)
            self._mark_applied(generation)
        self._mark_applied(self._requested)

    def _mark_applied(self, generation: int) -> None:
        with self._condition:
            self._applied = generation
            self._condition.notify_all()

    def _wait_for_events(self, wanted: dict[str, Handle], generation: int) -> None:
        """Count XIDs until `watch` is called or the event set fails. Remove GPUs that cannot be registered.

        Source: nvml.h, nvmlDeviceRegisterEvents: after an unknown error the set must be freed.
        """
        calls = self._nvml.calls
        events = None
        try:
            events = self._nvml.demand(calls.nvmlEventSetCreate)
            self._register(wanted, events)
            self._mark_applied(generation)
            while not self._changed.is_set():
                self._count(self._nvml.ask(calls.nvmlEventSetWait, events, WAIT_MS), wanted)
        except NvmlError as error:
            logger.info("waiting for XIDs again: %s", error)
            self._changed.wait(PAUSE_SECONDS)
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
        event_address = address(event.device)
        uuid = next((uuid for uuid, handle in wanted.items() if address(handle) == event_address), None)
        if uuid is None:
            uuid = self._nvml.ask(self._nvml.calls.nvmlDeviceGetUUID, event.device) or ""
        xid = (uuid, int(event.eventData))
        count, _ = self._counts.get(xid, (0, 0))
        self._counts[xid] = (count + 1, self._clock())

    def _free(self, events: object) -> None:
        if events is None:
            return
        try:
            self._nvml.ask(self._nvml.calls.nvmlEventSetFree, events)
        except NvmlError:  # NVML lost its state, and the set with it
            return
