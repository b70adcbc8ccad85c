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
        return UsageAmount(*map(int.__add__, self, other))

    def minus(self, other: "UsageAmount") -> "UsageAmount":
        """The difference."""
        return UsageAmount(*map(int.__sub__, self, other))

    def exceeds(self, most: "UsageAmount") -> bool:
        """Whether any amount is larger."""
        return any(own > bound for own, bound in zip(self, most, strict=True))


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
    """The maximum that the GPUs of a report, made at `now_us` by the node's clock, can have done in each hour."""

    def __init__(self, now_us: int, allowance: Allowance) -> None:
        self._now_us = now_us
        self._allowance = allowance
        self._reported: dict[tuple[str, int], UsageAmount] = {}

    def held(self, gpu: str, last: Hour | None, hour: Hour) -> Fault | None:
        """Why an assignment cannot have done that in `hour`, of which `last` was reported before."""
        if not _possible(hour) or hour.to_us > self._now_us:
            return Fault.IMPOSSIBLE
        before, now = _work(last) if last else UsageAmount(), _work(hour)
        return self._add((gpu, hour.start_us), before, now)

    def unallocated(self, gpu: str, last: GpuHour | None, hour: GpuHour) -> Fault | None:
        """Why unallocated GPUs cannot have done that."""
        if hour.start_us % US_PER_HOUR or hour.start_us > self._now_us:
            return Fault.IMPOSSIBLE
        before = UsageAmount(0, last.unattributed, last.energy) if last else UsageAmount()
        undated = hour.energy  # that of a GPU that was lost falls on when it came back
        return self._add((gpu, hour.start_us), before, UsageAmount(0, hour.unattributed, hour.energy), undated=undated)

    def _add(self, place: tuple[str, int], before: UsageAmount, now: UsageAmount, *, undated: int = 0) -> Fault | None:
        reported = self._reported.get(place, UsageAmount())
        dated = now.minus(UsageAmount(energy=undated))
        most = most_in(min(US_PER_HOUR, self._now_us - place[1]), late_us=_LATE_US)
        if reported.plus(dated).exceeds(most) or not self._allowance.take(now.minus(before)):
            return Fault.EXCEEDED
        self._reported[place] = reported.plus(dated)
        return None


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
