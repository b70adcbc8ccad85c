"""Bounds what agents may report, by time, devices and power: agents run on nodes that may be compromised."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from gputally.model.devices import MOST_POWER
from gputally.model.units import GPU, US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import AssignmentReport, Fault, GpuHour, Hour

_LATE_US: Final = 60 * US_PER_SECOND
"""Energy is known between two readings, and all of it may be attributed to a pod that used the GPU only briefly."""
KEPT_US: Final = 73 * US_PER_HOUR
"""Maximum time in one report: journals are limited to 72 hours."""
_MOST_MEMORY: Final = 1 << 44
"""16 TiB, more than any GPU has."""


class UsageAmount(NamedTuple):
    """GPU-time (µs·µGPU) measured and used, and energy (mJ)."""

    measured: int = 0
    used: int = 0
    energy: int = 0

    def plus(self, other: "UsageAmount") -> "UsageAmount":
        """The sum of both."""
        return UsageAmount(self.measured + other.measured, self.used + other.used, self.energy + other.energy)

    def minus(self, other: "UsageAmount") -> "UsageAmount":
        """The difference."""
        return UsageAmount(self.measured - other.measured, self.used - other.used, self.energy - other.energy)

    def exceeds(self, most: "UsageAmount") -> bool:
        """Whether any amount is larger."""
        return self.measured > most.measured or self.used > most.used or self.energy > most.energy


_NOTHING: Final = UsageAmount()


def most_in(span_us: int, *, gpus: int = 1, late_us: int = 0) -> UsageAmount:
    """The maximum that the GPUs can do in a span, with energy reported up to `late_us` late."""
    gpu_time = gpus * GPU * span_us
    return UsageAmount(gpu_time, gpu_time, gpus * MOST_POWER * (span_us + late_us) // US_PER_SECOND)


class Allowance:
    """The remaining amount that a node may add: the maximum of its GPUs in the time since agents' journals begin.

    So even an agent that invents restarts, or clocks, cannot add more than is physically possible.
    """

    def __init__(self, *, at_us: int) -> None:
        self._gpus = 0
        self._at_us = at_us
        self._left = UsageAmount()

    def advance(self, at_us: int, *, gpus: int) -> None:
        """Advance to `at_us`; the node has, or had, that many GPUs."""
        if gpus > self._gpus:
            self._left = self._left.plus(most_in(KEPT_US, gpus=gpus - self._gpus))
            self._gpus = gpus
        grown = self._left.plus(most_in(max(0, at_us - self._at_us), gpus=self._gpus))
        self._left = UsageAmount(*map(min, grown, most_in(KEPT_US, gpus=self._gpus)))
        self._at_us = max(self._at_us, at_us)

    def take(self, work: UsageAmount) -> bool:
        """Subtract the amount, unless it exceeds what remains."""
        if work.exceeds(self._left):
            return False
        self._left = self._left.minus(work)
        return True


class UsageRoom:
    """The maximum that the GPUs of a report, made at `now_us` by the node's clock, can have done in each hour.

    What was counted before, of hours that the report has too, is added first.
    """

    def __init__(self, now_us: int, allowance: Allowance) -> None:
        self._now_us = now_us
        self._allowance = allowance
        self._counted: dict[tuple[str, int], UsageAmount] = {}

    def add_held(self, gpu: str, hour: Hour) -> None:
        """An assignment was counted to have done that in `hour`."""
        self._add((gpu, hour.start_us), _work(hour))

    def add_unallocated(self, gpu: str, hour: GpuHour) -> None:
        """Unallocated GPUs were counted to have done that."""
        self._add((gpu, hour.start_us), _dated(hour))

    def held(self, gpu: str, last: Hour | None, hour: Hour) -> Fault | None:
        """Why an assignment cannot have done that in `hour`, of which `last` was counted before."""
        if not _possible(hour) or hour.to_us > self._now_us:
            return Fault.IMPOSSIBLE
        more = _work(hour).minus(_work(last)) if last else _work(hour)
        return self._take((gpu, hour.start_us), more, dated=more)

    def unallocated(self, gpu: str, last: GpuHour | None, hour: GpuHour) -> Fault | None:
        """Why unallocated GPUs cannot have done that in `hour`, of which `last` was counted before."""
        if hour.start_us % US_PER_HOUR or hour.start_us > self._now_us:
            return Fault.IMPOSSIBLE
        dated = _dated(hour).minus(_dated(last)) if last else _dated(hour)
        energy = hour.energy - (last.energy if last else 0)
        return self._take((gpu, hour.start_us), dated.plus(UsageAmount(energy=energy)), dated=dated)

    def _take(self, place: tuple[str, int], more: UsageAmount, *, dated: UsageAmount) -> Fault | None:
        """Count `more`, of which `dated` was done in that hour, unless that is too much."""
        most = most_in(min(US_PER_HOUR, self._now_us - place[1]), late_us=_LATE_US)
        counted = self._counted.get(place, _NOTHING).plus(dated)
        if counted.exceeds(most) or not self._allowance.take(more):
            return Fault.EXCEEDED
        self._counted[place] = counted
        return None

    def _add(self, place: tuple[str, int], amount: UsageAmount) -> None:
        self._counted[place] = self._counted.get(place, _NOTHING).plus(amount)


def fault_of_assignment(report: AssignmentReport, *, now_us: int) -> Fault | None:
    """Why an assignment is impossible: it is in the future, or has more than one GPU."""
    times = (report.since_us, report.seen_us, report.after_us or 0, report.until_us or 0)
    return Fault.IMPOSSIBLE if report.share > GPU or max(times) > now_us else None


def gpus_of(names: Iterable[str], *, known: int) -> int:
    """The number of GPUs of a node with `known` µGPU; if 0, as unknown, the number that is reported."""
    return -(-known // GPU) or len(set(names))


def _possible(hour: Hour) -> bool:
    """Whether one device can have done that: at most all of a GPU, and no negative idle time."""
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


def _dated(hour: GpuHour) -> UsageAmount:
    """What was done in that hour: not the energy, as that of a GPU that was lost falls on when it came back."""
    return UsageAmount(used=hour.unattributed)
