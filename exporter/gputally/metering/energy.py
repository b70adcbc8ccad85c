"""The energy of a GPU: what a counter that may be reset tells, and who spent it."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gputally.metering.apportion import apportion
from gputally.metering.assignment_meter import AssignmentMeter
from gputally.model.measured.device import MOST_POWER
from gputally.model.units import US_PER_SECOND

_MARGIN: Final = 2
_MOMENT_US: Final = US_PER_SECOND
"""Counters are brought up to date several times a second, and not at the moment they are read."""


class Claim(NamedTuple):
    """What somebody, or nobody, used or held of a GPU within one hour, in µs·µGPU."""

    assignment: AssignmentMeter | None
    from_us: int
    to_us: int
    amount: int


class Meter:
    """Follows a counter of mJ that only ever grows, until the driver is loaded anew, and counts what can be.

    A GPU draws `_MARGIN` times its power limit at most: peaks are above it, and some drivers count the whole module.
    """

    def __init__(self) -> None:
        self.resets = 0
        self.faults = 0
        self._last: int | None = None
        self._at_us = 0
        self._limit: int | None = None

    def delta(self, value: int | None, *, at_us: int, limit: int | None) -> int:
        """Energy in mJ since the last known value, 0 at the first; `limit` is the power limit in mW, None if unknown.

        A value that is lower by no more than one moment's energy is jitter: nothing, until it has passed what it was
        before. One that is so low that all of it can have been spent since was reset. Whatever else cannot be is a
        fault: a fall counts for nothing, a jump for the most that can have been spent.
        """
        if value is None:
            return 0
        power = max(_most_power(limit), _most_power(self._limit) if self._limit else 0)
        moment = power * _MOMENT_US // US_PER_SECOND
        most = power * (at_us - self._at_us) // US_PER_SECOND + moment
        last = self._last
        if last is not None and 0 < last - value <= moment:
            return 0
        self._last, self._at_us, self._limit = value, at_us, limit
        if last is None:
            return 0
        if 0 <= value - last <= most:
            return value - last
        if value < last and value <= most:
            self.resets += 1
            return value
        self.faults += 1
        return most if value > last else 0


def _most_power(limit: int | None) -> int:
    return min(limit * _MARGIN, MOST_POWER) if limit else MOST_POWER


def spent(delta: int, used: Sequence[Claim], held: Sequence[Claim]) -> Iterator[tuple[Claim, int]]:
    """What of `delta` mJ falls on what was `used`, or if nothing was on what was `held`; in all exactly `delta`.

    Nothing at all if nothing was either.
    """
    for claims in (used, held):
        amounts = [claim.amount for claim in claims]
        if any(amounts):
            yield from zip(claims, apportion(delta, amounts), strict=True)
            return
