"""Repeated readings of one GPU and of the processes on it, from its own thread."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from gputally.accounting.facts.gpu_model import gpu_model_named
from gputally.devices.nvml.activity import PER_CENT, Activity, DriverTime, Silence
from gputally.devices.nvml.capabilities import Memory, activity_of_gpu, activity_of_instance, efficiency_of, memory_of
from gputally.devices.nvml.condition import Conditions
from gputally.devices.nvml.library import DeviceChanged, Handle, Nvml
from gputally.devices.nvml.mig_layout import Device, MigLayout, handle_at, layout_of
from gputally.model.devices import Efficiency, Gpu, Part, Process, Reading, Source, Span
from gputally.model.rules import Rules

if TYPE_CHECKING:
    from gputally.devices.nvml.gpm import GpmEfficiency

PodOf = Callable[[int], str | None]
"""Maps a PID to its pod UID: "" for a process outside any pod, None if the process is not visible."""
_LISTS: Final = (
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)


LISTED_US: Final = 4_500_000
"""Cache time of the process lists: they cost more than all other calls together, and change rarely."""


class Processes:
    """The processes on the GPU or MIG device `handle`. MIG devices have no utilisation per process."""

    def __init__(self, nvml: Nvml, handle: Handle, pod_of: PodOf, since_us: int, time: DriverTime) -> None:
        calls = nvml.calls
        candidates = (partial(getattr(calls, name), handle) for name in _LISTS)
        self._nvml = nvml
        self._lists = [candidate for candidate in candidates if nvml.supports(candidate)]
        self._use = partial(calls.nvmlDeviceGetProcessUtilization, handle)
        self._has_use = nvml.supports(self._use, since_us)
        self._seen_us = since_us
        self._time = time
        self._pod_of = pod_of
        self._pods: dict[int, str | None] = {}
        self._listed: dict[int, int | None] | None = None
        self._listed_us: int | None = None

    def read(self, now_us: int) -> tuple[Process, ...] | None:
        """Running processes, and processes that used the device since the last reading but have exited.

        Blocks; raises like Nvml.expect.
        """
        if self._listed_us is None or not 0 <= now_us - self._listed_us < LISTED_US:
            self._listed, self._listed_us = self._memory(), now_us
        memory = self._listed
        busy = self._busy(now_us) if self._has_use else None
        if memory is None:
            return None
        pids = memory.keys() | (busy or {}).keys()
        self._pods = dict(self._pods_of(pids))
        idle = None if busy is None else 0  # if any process has samples, those without were idle
        return tuple(
            Process(
                pid=pid,
                memory=memory.get(pid),
                busy=busy.get(pid, idle) if busy else idle,
                pod_uid=self._pods[pid],
            )
            for pid in sorted(pids)
        )

    def _pods_of(self, pids: set[int]) -> Iterator[tuple[int, str | None]]:
        """Pod UIDs by PID. Looks up only new processes and those whose pod was not visible."""
        for pid in pids:
            known = self._pods.get(pid)
            yield pid, self._pod_of(pid) if known is None else known

    def _memory(self) -> dict[int, int | None] | None:
        """Memory by PID, the maximum over all lists: a process on several lists has its whole memory on each."""
        if not self._lists:
            return None
        found: dict[int, int | None] = {}
        for call in self._lists:
            processes = self._nvml.expect(call)
            if processes is None:
                return None
            for process in processes:
                known, reported = found.get(process.pid), process.usedGpuMemory
                found[process.pid] = reported if known is None else max(known, reported or 0)
        return found

    def _busy(self, now_us: int) -> dict[int, int] | None:
        """Mean utilisation of new samples by PID; None without samples, because idle processes are then unknown."""
        ahead_us = self._time.ahead_us(now_us)
        samples = self._nvml.expect(self._use, self._seen_us + ahead_us)
        seen_us, self._seen_us = self._seen_us, min(self._seen_us, now_us)
        reported: defaultdict[int, list[int]] = defaultdict(list)
        for sample in samples or ():
            at_us, percent = sample.timeStamp - ahead_us, sample.smUtil
            if seen_us < at_us <= now_us and percent <= 100:  # noqa: PLR2004 - percent; zombies show more
                reported[sample.pid].append(percent)
                self._seen_us = max(self._seen_us, at_us)
        return {pid: sum(each) * PER_CENT // len(each) for pid, each in reported.items()} or None


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
