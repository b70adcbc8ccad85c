"""Processes on a device, with their memory and utilisation."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from gputally.devices.nvml.activity import PER_CENT, DriverTime
from gputally.devices.nvml.library import Handle, Nvml
from gputally.model.devices import Process

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
