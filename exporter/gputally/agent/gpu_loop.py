"""Read all GPUs once per interval."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from gputally.devices.nvml.gpu_worker import Trouble, TroubleReason
from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.devices import Reading
from gputally.model.health import NodeHealth
from gputally.model.units import US_PER_SECOND
from gputally.process.clock import Clock
from gputally.process.command import every

GRACE_US: Final = 10 * US_PER_SECOND
"""A GPU that hangs or fails for less time is not lost: the driver still has the utilisation of that time."""


class GpuSource(Protocol):
    """The GPUs to read, real or simulated."""

    async def read_all(self, now_us: int) -> Sequence[Reading | Trouble]:
        """Read each GPU seen since the start, at `now_us` by the node's clock."""

    def xids(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """XID errors by GPU and code: their count, and the time of the last one (µs)."""


class GpuLoop:
    """Keeps the last reading of each reachable GPU by UUID (`readings`), and the UUIDs of unreachable GPUs (`down`)."""

    def __init__(
        self, gpus: GpuSource, accounts: DeviceAccounts, health: NodeHealth, *, clock: Clock, interval_s: float
    ) -> None:
        self.readings: dict[str, Reading] = {}
        self.down: set[str] = set()
        self._gpus = gpus
        self._accounts = accounts
        self._health = health
        self._clock = clock
        self._interval_s = interval_s

    def xids(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """XID errors by GPU and code: their count, and the time of the last one (µs)."""
        return self._gpus.xids()

    async def run(self) -> None:
        """Read every interval until cancelled, however long the last reading took."""
        await every(self._interval_s, self.step)

    async def step(self) -> None:
        """Read all GPUs once."""
        for each in await self._gpus.read_all(self._clock()):
            self._apply(each)

    def _apply(self, each: Reading | Trouble) -> None:
        if isinstance(each, Reading):
            self._health.reads["ok"] += 1
            self._health.last_read_us = each.at_us
            self.readings[each.gpu.uuid] = each
            self.down.discard(each.gpu.uuid)
            self._accounts.read(each)
            return
        self._health.reads[each.reason.value] += 1
        now_us, last = self._clock(), self.readings.get(each.uuid)
        if each.reason is TroubleReason.LOST or last is None or now_us - last.at_us > GRACE_US:
            self.readings.pop(each.uuid, None)
            self.down.add(each.uuid)
            self._accounts.lost(each.uuid, now_us)
