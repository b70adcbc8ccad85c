"""Running usage amounts of one part assigned to one container."""

from typing import NamedTuple

from msgspec import Struct, field

from gputally.model.devices import PartAllocation
from gputally.model.units import US_PER_HOUR


class AssignmentName(NamedTuple):
    """Identifies a container on a part by name. Successive pods may have the same name."""

    part: str
    namespace: str
    pod: str
    container: str


def assignment_name(allocation: PartAllocation) -> AssignmentName:
    """The name of the container that the part is allocated to."""
    return AssignmentName(allocation.part, allocation.namespace, allocation.pod, allocation.container)


def hour_of(us: int) -> int:
    """Start of the UTC hour that contains `us`."""
    return us - us % US_PER_HOUR


class HourAmounts(Struct, gc=False):
    """Running amounts of one hour, in the units of `usage_report.Hour`; they cover time within [from_us, to_us]."""

    from_us: int
    to_us: int
    measured: int = 0
    used: int = 0
    burst: int = 0
    memory: int = 0
    memory_us: int = 0
    energy: int = 0


class CumulativeUsage(Struct, eq=False, gc=False):
    """Usage of all containers of one name, in the units of `usage_report.Hour`.

    `held` is the integral of the share, in µs·µGPU. `until_us` is the end of the last assignment, None while the part
    is assigned. `memory_now` is the memory at the last reading, None if unknown.
    """

    held: int = 0
    measured: int = 0
    used: int = 0
    burst: int = 0
    memory: int = 0
    memory_us: int = 0
    energy: int = 0
    memory_now: int | None = None
    until_us: int | None = None


class AssignmentMeter(Struct, eq=False, kw_only=True):
    """One part assigned to one container since `since_us`; times are as in `usage_report.AssignmentReport`.

    `gpu` and `share` (µGPU) are the last known values: "" and 0 until the part is first read.
    """

    allocation: PartAllocation
    since_us: int
    seen_us: int
    after_us: int | None
    until_us: int | None = None
    gpu: str = ""
    share: int = 0
    hours: dict[int, HourAmounts] = field(default_factory=dict)
    totals: CumulativeUsage = field(default_factory=CumulativeUsage)

    def add_allocated(self, gpu_time: int) -> None:
        """Add allocated GPU-time, in µs·µGPU."""
        self.totals.held += gpu_time

    def add_usage(self, from_us: int, to_us: int, *, share: int, used: int) -> None:
        """Add the GPU-time `used` (µs·µGPU) with a share of `share` µGPU."""
        measured = share * (to_us - from_us)
        burst = max(0, used - measured)
        for each in (self._hour(from_us, to_us), self.totals):
            each.measured += measured
            each.used += used
            each.burst += burst

    def add_memory(self, from_us: int, to_us: int, *, memory: int) -> None:
        """Add the used `memory`, in bytes."""
        span_us = to_us - from_us
        if self.until_us is None:
            self.totals.memory_now = memory
        for each in (self._hour(from_us, to_us), self.totals):
            each.memory += memory * span_us
            each.memory_us += span_us

    def add_energy(self, from_us: int, to_us: int, *, energy: int) -> None:
        """Add energy, in mJ."""
        self._hour(from_us, to_us).energy += energy
        self.totals.energy += energy

    def _hour(self, from_us: int, to_us: int) -> HourAmounts:
        """The amounts of the hour that contains [from_us, to_us), extended to cover it."""
        start_us = hour_of(from_us)
        amounts = self.hours.get(start_us)
        if amounts is None:
            amounts = self.hours[start_us] = HourAmounts(from_us, to_us)
        elif from_us < amounts.from_us:
            amounts.from_us = from_us
        amounts.to_us = max(amounts.to_us, to_us)
        return amounts
