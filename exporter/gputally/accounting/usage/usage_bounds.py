"""What agents can have measured, by time, devices and power: they run on nodes that others may break into."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from gputally.model.measured.device import MOST_POWER
from gputally.model.measured.usage_report import AssignmentReport, Fault, GpuHour, Hour
from gputally.model.units import GPU, US_PER_HOUR, US_PER_SECOND

_LATE_US: Final = 60 * US_PER_SECOND
"""Energy is that between two readings, and may fall on whoever used the GPU for a moment of that time."""
KEPT_US: Final = 73 * US_PER_HOUR
"""An agent tells at once of so much at most: what it keeps is limited to 72 hours."""
_MOST_MEMORY: Final = 1 << 44
"""16 TiB, more than any GPU has."""


class UsageAmount(NamedTuple):
    """GPU-time (µs·µGPU) measured and used, and energy (mJ)."""

    measured: int = 0
    used: int = 0
    energy: int = 0

    def plus(self, other: "UsageAmount") -> "UsageAmount":
        """Both together."""
        return UsageAmount(*map(int.__add__, self, other))

    def minus(self, other: "UsageAmount") -> "UsageAmount":
        """What this has more."""
        return UsageAmount(*map(int.__sub__, self, other))

    def exceeds(self, most: "UsageAmount") -> bool:
        """Whether anything is more than that."""
        return any(own > bound for own, bound in zip(self, most, strict=True))


def most_in(span_us: int, *, gpus: int = 1, late_us: int = 0) -> UsageAmount:
    """What so many GPUs can do in such a time, with energy that is told `late_us` late."""
    gpu_time = gpus * GPU * span_us
    return UsageAmount(gpu_time, gpu_time, gpus * MOST_POWER * (span_us + late_us) // US_PER_SECOND)


class Allowance:
    """What a node may add: what its GPUs can do in the time that passes, and before that in the time agents remember.

    So an agent that invents lives of its own, or clocks, still adds no more than there is.
    """

    def __init__(self, *, at_us: int) -> None:
        self._gpus = 0
        self._at_us = at_us
        self._left = UsageAmount()

    def advance(self, at_us: int, *, gpus: int) -> None:
        """It is `at_us`, and the node has so many GPUs, or had once."""
        if gpus > self._gpus:
            self._left = self._left.plus(most_in(KEPT_US, gpus=gpus - self._gpus))
            self._gpus = gpus
        grown = self._left.plus(most_in(max(0, at_us - self._at_us), gpus=self._gpus))
        self._left = UsageAmount(*map(min, grown, most_in(KEPT_US, gpus=self._gpus)))
        self._at_us = max(self._at_us, at_us)

    def take(self, work: UsageAmount) -> bool:
        """Take as much away, unless that is more than is left."""
        if work.exceeds(self._left):
            return False
        self._left = self._left.minus(work)
        return True


class Room:
    """What the GPUs of one report, written at `now_us` by the node's clock, can have done in each hour."""

    def __init__(self, now_us: int, allowance: Allowance) -> None:
        self._now_us = now_us
        self._allowance = allowance
        self._told: dict[tuple[str, int], UsageAmount] = {}

    def held(self, gpu: str, last: Hour | None, hour: Hour) -> Fault | None:
        """Why a holder cannot have done that in `hour`, of which `last` was told before."""
        if not _possible(hour) or hour.to_us > self._now_us:
            return Fault.IMPOSSIBLE
        before, now = _work(last) if last else UsageAmount(), _work(hour)
        return self._add((gpu, hour.start_us), before, now)

    def unallocated(self, gpu: str, last: GpuHour | None, hour: GpuHour) -> Fault | None:
        """Why nobody can have done that."""
        if hour.start_us % US_PER_HOUR or hour.start_us > self._now_us:
            return Fault.IMPOSSIBLE
        before = UsageAmount(0, last.unattributed, last.energy) if last else UsageAmount()
        undated = hour.energy  # that of a GPU that was lost falls on when it came back
        return self._add((gpu, hour.start_us), before, UsageAmount(0, hour.unattributed, hour.energy), undated=undated)

    def _add(self, place: tuple[str, int], before: UsageAmount, now: UsageAmount, *, undated: int = 0) -> Fault | None:
        told = self._told.get(place, UsageAmount())
        dated = now.minus(UsageAmount(energy=undated))
        most = most_in(min(US_PER_HOUR, self._now_us - place[1]), late_us=_LATE_US)
        if told.plus(dated).exceeds(most) or not self._allowance.take(now.minus(before)):
            return Fault.EXCEEDED
        self._told[place] = told.plus(dated)
        return None


def fault_of_assignment(told: AssignmentReport, *, now_us: int) -> Fault | None:
    """Why there cannot be such a holder: it is to come, or has more than a GPU."""
    times = (told.since_us, told.seen_us, told.after_us or 0, told.until_us or 0)
    return Fault.IMPOSSIBLE if told.share > GPU or max(times) > now_us else None


def gpus_of(names: Iterable[str], *, known: int) -> int:
    """How many GPUs a node has that offers `known` µGPU, 0 where that is not known: then as many as are told of."""
    return -(-known // GPU) or len(set(names))


def _possible(hour: Hour) -> bool:
    """Whether one device can have done that: no more than all of a GPU, and idle for no less than no time."""
    span_us = hour.to_us - hour.from_us
    return (
        hour.start_us % US_PER_HOUR == 0
        and not _work(hour).exceeds(most_in(span_us, late_us=_LATE_US))
        and hour.used - hour.burst <= hour.measured
        and hour.memory_us <= span_us
        and hour.memory <= _MOST_MEMORY * hour.memory_us
    )


def _work(hour: Hour) -> UsageAmount:
    return UsageAmount(hour.measured, hour.used, hour.energy)
