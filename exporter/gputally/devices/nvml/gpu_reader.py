"""One GPU, read again and again by the one thread that has it."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gputally.accounting.nodes.gpu_model import gpu_model_named
from gputally.devices.nvml.activity import Activity, Silence
from gputally.devices.nvml.capabilities import Memory, activity_of_gpu, activity_of_instance, memory_of
from gputally.devices.nvml.condition import Conditions
from gputally.devices.nvml.driver_time import DriverTime
from gputally.devices.nvml.library import DeviceChanged, Handle, Nvml
from gputally.devices.nvml.mig_layout import Device, MigLayout, handle_at, layout_of
from gputally.devices.nvml.processes import PodOf, Processes
from gputally.model.measured.device import Gpu, Part, Reading, Source, Span
from gputally.model.rules import Rules

Shared = tuple[str, ...]
"""The UUIDs of the devices that share an activity: all those of one GPU instance."""
LAYOUT_US: Final = 10_000_000
"""So often a GPU is asked how it is cut, without an occasion."""


class ReadOptions(Struct, frozen=True, kw_only=True):
    """How GPUs are read: about every `interval_us`, what changes slowly at every `slow_every`-th reading.

    `clock` is the node's own (µs), by which the driver stamps its samples. `rules` say what MIG devices weigh.
    """

    pod_of: PodOf
    clock: Callable[[], int]
    interval_us: int = 1_000_000
    slow_every: int = 10
    rules: Rules = Rules()


class GpuReader:
    """The GPU `uuid`, whose utilisation is told from `since_us` on, as far as the driver remembers.

    It blocks, and one thread alone may use it. Errors of all: NvmlError, split as the table in errors.py says.
    """

    def __init__(self, nvml: Nvml, uuid: str, options: ReadOptions, since_us: int) -> None:
        self.until_us = since_us
        self._nvml = nvml
        self._options = options
        self._time = DriverTime(options.clock)
        self.handle = nvml.demand(nvml.calls.nvmlDeviceGetHandleByUUID, uuid)
        self.gpu = identity(nvml, self.handle, uuid)
        self._activities: dict[Shared, Activity] = {}
        self._untold: dict[Shared, tuple[Span, ...]] = {}
        self._arrange(self._layout(), since_us)

    def read(self, now_us: int, *, again: bool = False) -> Reading:
        """All that the GPU tells at `now_us`, also if it was cut anew just now.

        `again` tells once more of the utilisation that was told before: nobody heard it.
        """
        if not again:
            self._untold.clear()
        if not 0 <= now_us - self._arranged_us < LAYOUT_US:
            self._check(now_us)
        try:
            return self._look(now_us)
        except DeviceChanged:
            self._arrange(self._layout(), now_us)
            return self._look(now_us)

    def close(self) -> None:
        """Give back what the driver lent."""
        while self._activities:
            _, activity = self._activities.popitem()
            activity.close()

    def _look(self, now_us: int) -> Reading:
        condition = self._conditions.read()
        for key, activity in self._activities.items():
            self._untold[key] = self._untold.get(key, ()) + activity.read(now_us)
            self.until_us = max(self.until_us, activity.until_us)
        return Reading(
            gpu=self.gpu,
            at_us=now_us,
            mig=self._cut.mig,
            parts=tuple(part.read(now_us, self._untold[part.key]) for part in self._parts),
            condition=condition,
        )

    def _layout(self) -> MigLayout:
        return layout_of(self._nvml, self.handle, self.gpu.uuid, self.gpu.model, self._options.rules)

    def _check(self, now_us: int) -> None:
        layout = self._layout()
        self._arranged_us = now_us
        if layout != self._cut:
            self._arrange(layout, now_us)

    def _arrange(self, layout: MigLayout, now_us: int) -> None:
        """Probe anew; only what counts the activity of an instance that has the same devices goes on."""
        self._cut = layout
        self._arranged_us = now_us
        self._conditions = Conditions(self._nvml, self.handle, self._options.slow_every)
        if not layout.mig:
            self.close()
        shared = sharers(layout)
        for gone in self._activities.keys() - set(shared.values()):
            self._activities.pop(gone).close()
        for device in layout.devices:
            if shared[device.uuid] not in self._activities:
                self._activities[shared[device.uuid]] = self._activity(device)
        self._parts = [self._part(device, shared[device.uuid], now_us) for device in layout.devices]

    def _activity(self, device: Device) -> Activity:
        if not self._cut.mig:
            return activity_of_gpu(self._nvml, self.handle, self.until_us, self._options.interval_us, self._time)
        return Silence() if device.gi is None else activity_of_instance(self._nvml, self.handle, device.gi)

    def _part(self, device: Device, key: Shared, now_us: int) -> "PartReader":
        handle = handle_at(self._nvml, device.address)
        since_us = max(self.until_us, now_us - self._options.interval_us)
        processes = Processes(self._nvml, handle, self._options.pod_of, since_us, self._time)
        memory = memory_of(self._nvml, handle)
        return PartReader(device, key, self._activities[key].source, memory, processes)


class PartReader:
    """A whole GPU or a MIG device, whose activity is that of its `key`."""

    def __init__(self, device: Device, key: Shared, source: Source, memory: Memory, processes: Processes) -> None:
        self.key = key
        self._device = device
        self._source = source
        self._memory = memory
        self._processes = processes

    def read(self, now_us: int, busy: tuple[Span, ...]) -> Part:
        """What it tells at `now_us`; DeviceChanged when it is not what it was."""
        used, total = self._memory()
        device = self._device
        return Part(
            uuid=device.uuid,
            weight=device.weight,
            profile=device.profile,
            gi=device.gi,
            ci=device.ci,
            placement=device.placement,
            source=self._source,
            busy=busy,
            memory_used=used,
            memory_total=total,
            processes=self._processes.read(now_us),
        )


def identity(nvml: Nvml, handle: Handle, uuid: str) -> Gpu:
    """What the GPU `handle` is."""
    calls = nvml.calls
    pci = nvml.ask(calls.nvmlDeviceGetPciInfo, handle)
    return Gpu(
        uuid=uuid,
        index=nvml.demand(calls.nvmlDeviceGetIndex, handle),
        minor=nvml.ask(calls.nvmlDeviceGetMinorNumber, handle),
        model=gpu_model_named(nvml.ask(calls.nvmlDeviceGetName, handle) or ""),
        pci_bus_id=pci.busId if pci else "",
    )


def uuid_at(nvml: Nvml, index: int) -> str:
    """The UUID of the GPU that is the `index`-th now."""
    handle = nvml.demand(nvml.calls.nvmlDeviceGetHandleByIndex, index)
    uuid: str = nvml.demand(nvml.calls.nvmlDeviceGetUUID, handle)
    return uuid


def sharers(layout: MigLayout) -> dict[str, Shared]:
    """By device with whom it shares its activity, itself among them."""
    together: dict[int | None, list[str]] = {}
    for device in layout.devices:
        together.setdefault(device.gi, []).append(device.uuid)
    return {device.uuid: tuple(together[device.gi]) for device in layout.devices}
