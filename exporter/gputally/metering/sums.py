"""Running sums of the usage of a GPU, and of each assignment of its parts, in µs·µGPU unless stated otherwise."""

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
    """Running amounts of one hour, in the units of `usage.Hour`; they cover time within [from_us, to_us].

    `revision` is that of the first report with the latest change, 0 until then.
    """

    from_us: int
    to_us: int
    measured: int = 0
    used: int = 0
    burst: int = 0
    memory: int = 0
    memory_us: int = 0
    energy: int = 0
    revision: int = 0


class CumulativeUsage(Struct, eq=False, gc=False):
    """Usage of all containers of one name, in the units of `usage.Hour`.

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
    """One part assigned to one container since `since_us`; times are as in `usage.AssignmentReport`.

    `gpu` and `share` (µGPU) are the last known values: "" and 0 until the part is first read. `revision` is the latest
    of its hours, and of its end.
    """

    allocation: PartAllocation
    since_us: int
    seen_us: int
    after_us: int | None
    until_us: int | None = None
    gpu: str = ""
    share: int = 0
    revision: int = 0
    hours: dict[int, HourAmounts] = field(default_factory=dict)
    totals: CumulativeUsage = field(default_factory=CumulativeUsage)

    def end(self, at_us: int) -> None:
        """The part is no longer assigned at `at_us`."""
        self.until_us = at_us
        self.revision = 0

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
        amounts.revision = self.revision = 0
        return amounts


class States(Struct, gc=False):
    """GPU-time since the first reading, by state. The states do not overlap, and add up to 10^6 µGPU times the time.

    `held`: allocated to containers. `free`: not allocated, and offered by the device plugin. `unhealthy`: not
    allocated, and not offered. `unsliced`: not covered by the MIG layout. `unknown`: the assignments of the part were
    unknown. `lost`: the driver could not reach the GPU.
    """

    held: int = 0
    free: int = 0
    unhealthy: int = 0
    unsliced: int = 0
    unknown: int = 0
    lost: int = 0

    @property
    def total(self) -> int:
        """The sum of all states."""
        return self.held + self.free + self.unhealthy + self.unsliced + self.unknown + self.lost


class MeasuredWork(Struct, gc=False):
    """Usage of the GPU in the time with known utilisation (`measured`), and energy in mJ.

    `used` is the integral of utilisation. It includes `unattributed` usage outside any allocation, and `unknown` usage
    while the assignments were unknown; the rest is attributed to assignments. `unallocated_energy` is the energy
    outside any allocation.
    """

    measured: int = 0
    used: int = 0
    unattributed: int = 0
    unknown: int = 0
    energy: int = 0
    unallocated_energy: int = 0
    energy_resets: int = 0
    energy_faults: int = 0


class UnallocatedMeter(Struct, gc=False):
    """Running amounts of one hour outside any allocation, as in `usage.GpuHour`; `revision` as in `HourAmounts`."""

    unattributed: int = 0
    energy: int = 0
    revision: int = 0


class GpuSums(Struct, eq=False):
    """All sums of one GPU; `hours` are the amounts outside any allocation."""

    states: States = field(default_factory=States)
    work: MeasuredWork = field(default_factory=MeasuredWork)
    hours: dict[int, UnallocatedMeter] = field(default_factory=dict)

    def add_unattributed(self, at_us: int, amount: int) -> None:
        """Add usage outside any allocation at `at_us`."""
        if amount:
            self.work.unattributed += amount
            self._hour(at_us).unattributed += amount

    def add_energy(self, at_us: int, energy: int) -> None:
        """Add energy (mJ) outside any allocation at `at_us`."""
        self.work.unallocated_energy += energy
        self._hour(at_us).energy += energy

    def _hour(self, at_us: int) -> UnallocatedMeter:
        hour = self.hours.setdefault(hour_of(at_us), UnallocatedMeter())
        hour.revision = 0
        return hour
