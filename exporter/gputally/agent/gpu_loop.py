"""Reading the GPUs, once every interval."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from gputally.devices.nvml.gpu_worker import Reason, Trouble
from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.measured.device import Reading
from gputally.model.measured.node_health import NodeHealth
from gputally.model.units import US_PER_SECOND
from gputally.process.clock import Clock
from gputally.process.every import every

PATIENCE_US: Final = 10 * US_PER_SECOND
"""For so long a GPU that hangs or fails may come back as if nothing had been: the driver remembers what it did."""


class GpuSource(Protocol):
    """What there is to read: the driver's GPUs, or simulated ones."""

    async def read_all(self, now_us: int) -> Sequence[Reading | Trouble]:
        """One for each GPU that was ever seen, at `now_us` by the node's clock."""

    def xids(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """Errors the driver reported: how many, and when the last (µs), by GPU and code."""


class GpuLoop:
    """`readings` are the last ones of the GPUs that answer, by UUID; `down` are the UUIDs of those that do not."""

    def __init__(
        self, gpus: GpuSource, books: DeviceAccounts, health: NodeHealth, *, clock: Clock, interval_s: float
    ) -> None:
        self.readings: dict[str, Reading] = {}
        self.down: set[str] = set()
        self._gpus = gpus
        self._books = books
        self._health = health
        self._clock = clock
        self._interval_s = interval_s

    def xids(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """Errors the driver reported: how many, and when the last (µs), by GPU and code."""
        return self._gpus.xids()

    async def run(self) -> None:
        """For ever: a tick every interval, however long the last one took."""
        await every(self._interval_s, self.step)

    async def step(self) -> None:
        """Read them all, once."""
        for each in await self._gpus.read_all(self._clock()):
            self._take(each)

    def _take(self, each: Reading | Trouble) -> None:
        if isinstance(each, Reading):
            self._health.reads["ok"] += 1
            self._health.last_read_us = each.at_us
            self.readings[each.gpu.uuid] = each
            self.down.discard(each.gpu.uuid)
            self._books.read(each)
            return
        self._health.reads[each.reason.value] += 1
        now_us, last = self._clock(), self.readings.get(each.uuid)
        if each.reason is Reason.LOST or last is None or now_us - last.at_us > PATIENCE_US:
            self.readings.pop(each.uuid, None)
            self.down.add(each.uuid)
            self._books.lost(each.uuid, now_us)
