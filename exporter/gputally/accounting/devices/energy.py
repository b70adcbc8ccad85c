"""The energy of a GPU: what a counter that may be reset tells, and who spent it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gputally.accounting.devices.apportion import apportion
from gputally.accounting.devices.holding import Holding


class Claim(NamedTuple):
    """What somebody, or nobody, used or held of a GPU within one hour, in µs·µGPU."""

    holding: Holding | None
    from_us: int
    to_us: int
    amount: int


class Meter:
    """Follows a counter of mJ that only ever grows, until the driver is loaded anew."""

    def __init__(self) -> None:
        self.resets = 0
        self._last: int | None = None

    def delta(self, value: int | None) -> int:
        """Energy in mJ since the last known value: none at the first one, and since the reset if the counter fell."""
        if value is None:
            return 0
        last, self._last = self._last, value
        if last is None:
            return 0
        if value < last:
            self.resets += 1
            return value
        return value - last


def spent(delta: int, used: Sequence[Claim], held: Sequence[Claim]) -> Iterator[tuple[Claim, int]]:
    """What of `delta` mJ falls on what was `used`, or if nothing was on what was `held`; in all exactly `delta`.

    Nothing at all if nothing was either.
    """
    for claims in (used, held):
        amounts = [claim.amount for claim in claims]
        if any(amounts):
            yield from zip(claims, apportion(delta, amounts), strict=True)
            return
