"""Posts usage to the totals, under the terms that applied to the pod when it was measured."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals
from gputally.model.allocation import Segment
from gputally.model.price import Price
from gputally.model.units import US_PER_HOUR
from gputally.model.usage import GpuHour, Hour

UNKNOWN = "unknown"
"""The tier of usage without a known pod."""
_FAMILIES = (Total.MEASURED, Total.USED, Total.BURST, Total.ENERGY)


class UsageTerms(NamedTuple):
    """Exported labels (tier, tenant, gpu_model), and the price of a GPU-hour."""

    labels: tuple[str, str, str]
    price: Price | None


class Measured(NamedTuple):
    """Amounts that accrued in [from_us, to_us], by our clock: GPU-time in µs·µGPU, energy in mJ."""

    from_us: int
    to_us: int
    amounts: tuple[int, ...]

    def divided(self, cuts: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The amounts between consecutive instants of `cuts`, in proportion to time; the parts add up exactly."""
        span_us = self.to_us - self.from_us
        upto = [[amount * (cut - self.from_us) // span_us for amount in self.amounts] for cut in cuts]
        return (tuple(now - then for then, now in zip(*pair, strict=True)) for pair in pairwise(upto))


def held_since(last: Hour | None, hour: Hour, *, ahead_us: int) -> Measured:
    """The growth of `hour` since `last`, the previous report of it: measured, used, burst, energy."""
    before = (last.measured, last.used, last.burst, last.energy) if last else (0, 0, 0, 0)
    now = (hour.measured, hour.used, hour.burst, hour.energy)
    from_us = min(last.to_us if last else hour.from_us, hour.to_us - 1)
    return Measured(from_us - ahead_us, hour.to_us - ahead_us, tuple(map(int.__sub__, now, before)))


def unallocated_since(last: GpuHour | None, hour: GpuHour, *, reported_us: int, ahead_us: int) -> Measured:
    """The growth of `hour` since `last` for unallocated GPUs, reported up to `reported_us`: used time, energy.

    The previous report was accepted after the accounting start.
    """
    before = (last.unattributed, last.energy) if last else (0, 0)
    from_us = hour.start_us - ahead_us
    to_us = max(from_us + 1, min(from_us + US_PER_HOUR, reported_us))
    amounts = (hour.unattributed - before[0], hour.energy - before[1])
    return Measured(to_us - 1 if last else from_us, to_us, amounts)


class UsagePosting:
    """Keeps the totals equal to the reports since the accounting start."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals

    def held(self, measured: Measured, segments: Sequence[Segment], *, at_us: int) -> None:
        """Post a pod's usage, split by time among its `segments`; the outer ones extend beyond their bounds."""
        last = segments[-1]
        if measured.from_us >= max(last.start_us, self._totals.accounting_start_us):  # the usual case
            self._count(UsageTerms(last.labels[:3], last.price), measured.amounts, at_us=at_us)
            return
        terms = [UsageTerms(segment.labels[:3], segment.price) for segment in segments]
        self._post(measured, terms, [segment.start_us for segment in segments[1:]], at_us=at_us)

    def unmatched(self, measured: Measured, labels: tuple[str, str, str], *, at_us: int) -> None:
        """Post usage of pods that the API server did not report."""
        gpu_time = self._post(measured, [UsageTerms(labels, None)], [], at_us=at_us)
        self._totals.count(Total.UNMATCHED, (), gpu_time, at_us=at_us)

    def unallocated(self, unattributed: int, energy: int, labels: tuple[str, str], *, at_us: int) -> None:
        """Post usage of unallocated GPUs since the accounting start."""
        self._totals.count(Total.UNATTRIBUTED, labels, unattributed, at_us=at_us)
        self._totals.count(Total.UNALLOCATED_ENERGY, labels, energy, at_us=at_us)

    def since_opening(self, measured: Measured) -> tuple[int, ...]:
        """The amounts without the time before the accounting start."""
        if measured.from_us >= self._totals.accounting_start_us:
            return measured.amounts
        return next(measured.divided(self._cuts(measured, [])))

    def declare(self, terms: UsageTerms, *, at_us: int) -> None:
        """Export usage under these terms as 0 before there is any."""
        self._count(terms, (0, 0, 0, 0), at_us=at_us)

    def _post(self, measured: Measured, terms: Sequence[UsageTerms], changes: Sequence[int], *, at_us: int) -> int:
        """Count the parts under the `terms` that apply between the `changes`; returns the measured GPU-time."""
        gpu_time = 0
        for each, amounts in zip(terms, measured.divided(self._cuts(measured, changes)), strict=True):
            self._count(each, amounts, at_us=at_us)
            gpu_time += amounts[0]
        return gpu_time

    def _cuts(self, measured: Measured, changes: Sequence[int]) -> list[int]:
        """The instants at which to split; the time before the accounting start is dropped."""
        begin_us = min(max(measured.from_us, self._totals.accounting_start_us), measured.to_us)
        return [begin_us, *(min(max(us, begin_us), measured.to_us) for us in changes), measured.to_us]

    def _count(self, terms: UsageTerms, amounts: tuple[int, ...], *, at_us: int) -> None:
        for total, amount in zip(_FAMILIES, amounts, strict=True):
            self._totals.count(total, terms.labels, amount, at_us=at_us)
        if terms.price:
            measured, used, burst, _ = amounts
            cost = terms.price.cost(measured - (used - burst))
            self._totals.count(Total.IDLE_COST, (*terms.labels, terms.price.currency), cost, at_us=at_us)
