"""Which processes use a device, their memory, and how busy each keeps it."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from gputally.devices.nvml.activity import PER_CENT
from gputally.devices.nvml.driver_time import DriverTime
from gputally.devices.nvml.library import Handle, Nvml
from gputally.model.measured.device import Process

PodOf = Callable[[int], str | None]
"""The UID of the pod of a process, "" for one of no pod, None where that cannot be seen."""
_LISTS: Final = (
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)


LISTED_US: Final = 4_500_000
"""How long the lists of processes are good for: they cost more than all else together, and change rarely."""


class Processes:
    """The processes on the GPU or MIG device `handle`; on a MIG device none tells how busy it is."""

    def __init__(self, nvml: Nvml, handle: Handle, pod_of: PodOf, since_us: int, time: DriverTime) -> None:
        calls = nvml.calls
        candidates = (partial(getattr(calls, name), handle) for name in _LISTS)
        self._nvml = nvml
        self._lists = [candidate for candidate in candidates if nvml.supports(candidate)]
        self._use = partial(calls.nvmlDeviceGetProcessUtilization, handle)
        self._tells_use = nvml.supports(self._use, since_us)
        self._seen_us = since_us
        self._time = time
        self._pod_of = pod_of
        self._pods: dict[int, str | None] = {}
        self._listed: dict[int, int | None] | None = None
        self._listed_us: int | None = None

    def read(self, now_us: int) -> tuple[Process, ...] | None:
        """Those that run, and those that ended since the last reading and kept it busy.

        Blocks; raises as Nvml.expect does.
        """
        if self._listed_us is None or not 0 <= now_us - self._listed_us < LISTED_US:
            self._listed, self._listed_us = self._memory(), now_us
        memory = self._listed
        busy = self._busy(now_us) if self._tells_use else None
        if memory is None:
            return None
        pids = memory.keys() | (busy or {}).keys()
        self._pods = dict(self._pods_of(pids))
        idle = None if busy is None else 0  # once some were told, those left out did nothing
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
        """Asked anew only for those that were not here at the last reading, or whose pod could not be seen."""
        for pid in pids:
            known = self._pods.get(pid)
            yield pid, self._pod_of(pid) if known is None else known

    def _memory(self) -> dict[int, int | None] | None:
        """By process the most that a list says: one that computes and draws is on two, with all of its memory."""
        if not self._lists:
            return None
        found: dict[int, int | None] = {}
        for call in self._lists:
            processes = self._nvml.expect(call)
            if processes is None:
                return None
            for process in processes:
                known, told = found.get(process.pid), process.usedGpuMemory
                found[process.pid] = told if known is None else max(known, told or 0)
        return found

    def _busy(self, now_us: int) -> dict[int, int] | None:
        """The average of the samples that are new; None if there are none, for then it is not known who idled."""
        ahead_us = self._time.ahead_us(now_us)
        samples = self._nvml.expect(self._use, self._seen_us + ahead_us)
        seen_us, self._seen_us = self._seen_us, min(self._seen_us, now_us)
        told: defaultdict[int, list[int]] = defaultdict(list)
        for sample in samples or ():
            at_us, percent = sample.timeStamp - ahead_us, sample.smUtil
            if seen_us < at_us <= now_us and percent <= 100:  # noqa: PLR2004 - percent; zombies show more
                told[sample.pid].append(percent)
                self._seen_us = max(self._seen_us, at_us)
        return {pid: sum(each) * PER_CENT // len(each) for pid, each in told.items()} or None
