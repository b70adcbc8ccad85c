"""The sums of one GPU as they run, all in µs·µGPU unless they say otherwise."""

from msgspec import Struct, field

from gputally.metering.assignment_meter import hour_of


class States(Struct, gc=False):
    """Time since the GPU was first read, times 10^6 µGPU, by state: a partition.

    `held` by containers; else `free` if the device plugin offers it and `unhealthy` if it does not; `unsliced` is what
    the MIG layout leaves uncovered; `unknown` is what of the slices nobody could tell who held it; `lost` while the
    driver did not reach the GPU.
    """

    held: int = 0
    free: int = 0
    unhealthy: int = 0
    unsliced: int = 0
    unknown: int = 0
    lost: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.held + self.free + self.unhealthy + self.unsliced + self.unknown + self.lost


class MeasuredWork(Struct, gc=False):
    """What the GPU did in the time for which its utilisation is known, `measured`; energy in mJ.

    `used` is the integral of utilisation. Of it, `unattributed` is nobody's though it is known who held what, and
    `unknown` was used while that was not known. The rest is the holders'. `unallocated_energy` is what no holder spent.
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
    """As in model/usage.GpuHour."""

    unattributed: int = 0
    energy: int = 0


class Sums(Struct, eq=False):
    """All sums of one GPU, with `hours` of what was nobody's."""

    states: States = field(default_factory=States)
    work: MeasuredWork = field(default_factory=MeasuredWork)
    hours: dict[int, UnallocatedMeter] = field(default_factory=dict)

    def unattributed(self, at_us: int, amount: int) -> None:
        """So much was used, at that time, by nobody who held it."""
        if amount:
            self.work.unattributed += amount
            self._hour(at_us).unattributed += amount

    def spent(self, at_us: int, energy: int) -> None:
        """So many mJ were spent, at that time, by no holder."""
        self.work.unallocated_energy += energy
        self._hour(at_us).energy += energy

    def _hour(self, at_us: int) -> UnallocatedMeter:
        return self.hours.setdefault(hour_of(at_us), UnallocatedMeter())
