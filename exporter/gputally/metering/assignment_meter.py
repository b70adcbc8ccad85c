"""What one container holds of one part, and what it did with it, as it is being counted."""

from typing import NamedTuple

from msgspec import Struct, field

from gputally.model.measured.device import PartAllocation
from gputally.model.units import US_PER_HOUR


class Name(NamedTuple):
    """What a holder is called: pods of one name follow each other on a part."""

    part: str
    namespace: str
    pod: str
    container: str


def name_of(held: PartAllocation) -> Name:
    """The name of who holds."""
    return Name(held.part, held.namespace, held.pod, held.container)


def hour_of(us: int) -> int:
    """When the hour (UTC) of an instant began, in µs."""
    return us - us % US_PER_HOUR


class Amounts(Struct, gc=False):
    """As in model/usage.Hour, growing; what they cover lies in [from_us, to_us]."""

    from_us: int
    to_us: int
    measured: int = 0
    used: int = 0
    burst: int = 0
    memory: int = 0
    memory_us: int = 0
    energy: int = 0


class Tally(Struct, eq=False, gc=False):
    """All that holders of one name did, in the units of model/usage.Hour; `held` is their share's time, in µs·µGPU.

    `until_us` is when the last one ended, None while one holds the part.
    `memory_now` is what it had when last looked at, None where that is unknown.
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
    """One container that holds a part, since `since_us`; times are as in model/usage.AssignmentReport.

    `gpu` and `share` (µGPU) are as last known: "" and 0 as long as nothing was read of the part.
    """

    held: PartAllocation
    since_us: int
    seen_us: int
    after_us: int | None
    until_us: int | None = None
    gpu: str = ""
    share: int = 0
    hours: dict[int, Amounts] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)

    def held_for(self, gpu_time: int) -> None:
        """It went on holding its share, which comes to so many µs·µGPU."""
        self.tally.held += gpu_time

    def measured(self, from_us: int, to_us: int, *, share: int, used: int) -> None:
        """It `used` so many µs·µGPU, having `share` µGPU."""
        own = share * (to_us - from_us)
        burst = max(0, used - own)
        for each in (self._hour(from_us, to_us), self.tally):
            each.measured += own
            each.used += used
            each.burst += burst

    def remembered(self, from_us: int, to_us: int, *, memory: int) -> None:
        """It had so many bytes of memory."""
        span_us = to_us - from_us
        if self.until_us is None:
            self.tally.memory_now = memory
        for each in (self._hour(from_us, to_us), self.tally):
            each.memory += memory * span_us
            each.memory_us += span_us

    def spent(self, from_us: int, to_us: int, *, energy: int) -> None:
        """It spent so many mJ."""
        self._hour(from_us, to_us).energy += energy
        self.tally.energy += energy

    def _hour(self, from_us: int, to_us: int) -> Amounts:
        """The amounts of the hour in which [from_us, to_us) lies, stretched to cover it."""
        start_us = hour_of(from_us)
        amounts = self.hours.get(start_us)
        if amounts is None:
            amounts = self.hours[start_us] = Amounts(from_us, to_us)
        elif from_us < amounts.from_us:
            amounts.from_us = from_us
        amounts.to_us = max(amounts.to_us, to_us)
        return amounts
