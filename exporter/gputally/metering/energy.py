"""Energy of a GPU: deltas of a counter that may reset, and their division among assignments."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gputally.metering.attribution import apportion
from gputally.metering.sums import AssignmentMeter
from gputally.model.devices import MOST_POWER
from gputally.model.units import US_PER_SECOND

_PEAK_FACTOR: Final = 2
_JITTER_US: Final = US_PER_SECOND
"""The driver updates the counter several times per second, not at the moment of the reading."""


class GpuTimeEntry(NamedTuple):
    """GPU-time within one hour (µs·µGPU), used by or allocated to an assignment; None for unallocated GPU-time."""

    assignment: AssignmentMeter | None
    from_us: int
    to_us: int
    amount: int


class EnergyMeter:
    """Computes plausible deltas of the driver's energy counter (mJ), which resets when the driver is reloaded.

    A GPU draws at most `_PEAK_FACTOR` times its power limit: peaks exceed it, and some drivers count the whole module.
    """

    def __init__(self) -> None:
        self.resets = 0
        self.faults = 0
        self._last: int | None = None
        self._at_us = 0
        self._limit: int | None = None

    def delta(self, value: int | None, *, at_us: int, limit: int | None) -> int:
        """Energy in mJ since the last known value, 0 at the first; `limit` is the power limit in mW, None if unknown.

        A decrease within the energy of `_JITTER_US` is jitter: it counts as 0 until the counter exceeds the last value.
        A decrease to a value that the GPU can have used since the last reading is a reset. Any other impossible change
        is a fault: a decrease counts as 0, an increase as the maximum possible energy.
        """
        if value is None:
            return 0
        power = max(_max_power(limit), _max_power(self._limit) if self._limit else 0)
        jitter = power * _JITTER_US // US_PER_SECOND
        maximum = power * (at_us - self._at_us) // US_PER_SECOND + jitter
        last = self._last
        if last is not None and 0 < last - value <= jitter:
            return 0
        self._last, self._at_us, self._limit = value, at_us, limit
        if last is None:
            return 0
        if 0 <= value - last <= maximum:
            return value - last
        if value < last and value <= maximum:
            self.resets += 1
            return value
        self.faults += 1
        return maximum if value > last else 0


def _max_power(limit: int | None) -> int:
    return min(limit * _PEAK_FACTOR, MOST_POWER) if limit else MOST_POWER


def split_energy(
    delta: int, used: Sequence[GpuTimeEntry], held: Sequence[GpuTimeEntry]
) -> Iterator[tuple[GpuTimeEntry, int]]:
    """Divide `delta` mJ in proportion to the `used` GPU-time, or to the `held` GPU-time if none was used.

    The parts add up to `delta`; there are none if both are 0.
    """
    for entries in (used, held):
        amounts = [entry.amount for entry in entries]
        if any(amounts):
            yield from zip(entries, apportion(delta, amounts), strict=True)
            return
