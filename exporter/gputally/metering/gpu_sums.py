"""Running sums of one GPU, in µs·µGPU unless stated otherwise."""

from msgspec import Struct, field

from gputally.metering.assignment_meter import hour_of


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
    """Running amounts of one hour outside any allocation, as in `usage_report.GpuHour`."""

    unattributed: int = 0
    energy: int = 0


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
        return self.hours.setdefault(hour_of(at_us), UnallocatedMeter())
