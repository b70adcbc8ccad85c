"""Repeated readings of one GPU, from its own thread."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from gputally.accounting.facts.gpu_model import gpu_model_named
from gputally.devices.nvml.activity import Activity, DriverTime, Silence
from gputally.devices.nvml.capabilities import (
    Memory,
    activity_of_gpu,
    activity_of_instance,
    efficiency_of,
    memory_of,
)
from gputally.devices.nvml.condition import Conditions
from gputally.devices.nvml.library import DeviceChanged, Handle, Nvml
from gputally.devices.nvml.mig_layout import Device, MigLayout, handle_at, layout_of
from gputally.devices.nvml.processes import PodOf, Processes
from gputally.model.devices import Efficiency, Gpu, Part, Reading, Source, Span
from gputally.model.rules import Rules

if TYPE_CHECKING:
    from gputally.devices.nvml.gpm import GpmEfficiency

Shared = tuple[str, ...]
"""UUIDs of the devices that share one activity source: all devices of a GPU instance."""
LAYOUT_US: Final = 10_000_000
"""Interval between routine checks of the MIG layout."""


class ReadOptions(Struct, frozen=True, kw_only=True):
    """How to read GPUs: about every `interval_us`, slow values at every `slow_every`-th reading.

    `clock` is the node clock (µs), which timestamps the driver's samples. `rules` define MIG device weights.
    """

    pod_of: PodOf
    clock: Callable[[], int]
    interval_us: int = 1_000_000
    slow_every: int = 10
    rules: Rules = Rules()


class GpuReader:
    """Reads GPU `uuid`. Utilisation starts at `since_us`, as far as the driver's buffer reaches.

    All methods block and may raise NvmlError (see the table in errors.py). Use it from one thread only.
    """

    def __init__(self, nvml: Nvml, uuid: str, options: ReadOptions, since_us: int) -> None:
        self.until_us = since_us
        self._nvml = nvml
        self._options = options
        self._time = DriverTime(options.clock)
        self.handle = nvml.demand(nvml.calls.nvmlDeviceGetHandleByUUID, uuid)
        self.gpu = identity(nvml, self.handle, uuid)
        self._activities: dict[Shared, Activity] = {}
        self._pending: dict[Shared, tuple[Span, ...]] = {}
        self._efficiencies: dict[Shared, GpmEfficiency] = {}
        self._until_slow = 0
        self._apply(self._layout(), since_us)

    def read(self, now_us: int, *, again: bool = False) -> Reading:
        """Read the GPU at `now_us`, even if its MIG layout just changed.

        `again` repeats the utilisation of the previous reading, for a caller that did not receive it.
        """
        if not again:
            self._pending.clear()
        if not 0 <= now_us - self._layout_checked_us < LAYOUT_US:
            self._check_layout(now_us)
        try:
            return self._read_once(now_us)
        except DeviceChanged:
            self._apply(self._layout(), now_us)
            return self._read_once(now_us)

    def close(self) -> None:
        """Release driver resources."""
        for readers in (self._activities, self._efficiencies):
            while readers:
                _, reader = readers.popitem()
                reader.close()

    def _read_once(self, now_us: int) -> Reading:
        condition = self._conditions.read()
        for key, activity in self._activities.items():
            self._pending[key] = self._pending.get(key, ()) + activity.read(now_us)
            self.until_us = max(self.until_us, activity.until_us)
        self._read_efficiencies(now_us)
        return Reading(
            gpu=self.gpu,
            at_us=now_us,
            mig=self._current_layout.mig,
            parts=tuple(self._read_part(part, now_us) for part in self._parts),
            condition=condition,
        )

    def _read_efficiencies(self, now_us: int) -> None:
        if self._until_slow <= 0:
            self._until_slow = self._options.slow_every
            for efficiency in self._efficiencies.values():
                efficiency.read(now_us)
        self._until_slow -= 1

    def _read_part(self, part: "PartReader", now_us: int) -> Part:
        efficiency = self._efficiencies.get(part.key)
        return part.read(now_us, self._pending[part.key], efficiency=efficiency.sums if efficiency else None)

    def _layout(self) -> MigLayout:
        return layout_of(self._nvml, self.handle, self.gpu.uuid, self.gpu.model, self._options.rules)

    def _check_layout(self, now_us: int) -> None:
        layout = self._layout()
        self._layout_checked_us = now_us
        if layout != self._current_layout:
            self._apply(layout, now_us)

    def _apply(self, layout: MigLayout, now_us: int) -> None:
        """Apply `layout` and probe again. Keep activity sources of GPU instances whose devices did not change."""
        self._current_layout = layout
        self._layout_checked_us = now_us
        self._conditions = Conditions(self._nvml, self.handle, self._options.slow_every)
        if not layout.mig:
            self.close()
        shared = sharers(layout)
        for key in self._activities.keys() - set(shared.values()):
            self._activities.pop(key).close()
            if efficiency := self._efficiencies.pop(key, None):
                efficiency.close()
        for device in layout.devices:
            if shared[device.uuid] not in self._activities:
                self._open(shared[device.uuid], device)
        self._parts = [self._part(device, shared[device.uuid], now_us) for device in layout.devices]

    def _open(self, key: Shared, device: Device) -> None:
        self._activities[key] = self._activity(device)
        has_counters = not self._current_layout.mig or device.gi is not None
        if has_counters and (efficiency := efficiency_of(self._nvml, self.handle, device.gi)):
            self._efficiencies[key] = efficiency

    def _activity(self, device: Device) -> Activity:
        if not self._current_layout.mig:
            return activity_of_gpu(self._nvml, self.handle, self.until_us, self._options.interval_us, self._time)
        return Silence() if device.gi is None else activity_of_instance(self._nvml, self.handle, device.gi)

    def _part(self, device: Device, key: Shared, now_us: int) -> "PartReader":
        handle = handle_at(self._nvml, device.address)
        since_us = max(self.until_us, now_us - self._options.interval_us)
        processes = Processes(self._nvml, handle, self._options.pod_of, since_us, self._time)
        memory = memory_of(self._nvml, handle)
        return PartReader(device, key, self._activities[key].source, memory, processes)


class PartReader:
    """Reads a whole GPU or a MIG device; `key` identifies its activity source."""

    def __init__(self, device: Device, key: Shared, source: Source, memory: Memory, processes: Processes) -> None:
        self.key = key
        self._device = device
        self._source = source
        self._memory = memory
        self._processes = processes

    def read(self, now_us: int, busy: tuple[Span, ...], *, efficiency: Efficiency | None) -> Part:
        """Read the device at `now_us`. Raises DeviceChanged if the device changed."""
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
            efficiency=efficiency,
        )


def identity(nvml: Nvml, handle: Handle, uuid: str) -> Gpu:
    """Identity of GPU `handle`."""
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
    """UUID of the GPU that currently has `index`."""
    handle = nvml.demand(nvml.calls.nvmlDeviceGetHandleByIndex, index)
    uuid: str = nvml.demand(nvml.calls.nvmlDeviceGetUUID, handle)
    return uuid


def sharers(layout: MigLayout) -> dict[str, Shared]:
    """The devices that share an activity source with each device, including itself."""
    by_instance: dict[int | None, list[str]] = {}
    for device in layout.devices:
        by_instance.setdefault(device.gi, []).append(device.uuid)
    return {device.uuid: tuple(by_instance[device.gi]) for device in layout.devices}
