"""Rounding by largest remainder: rounded parts add up to the rounded total."""

from collections.abc import Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Final

from gputally.model.units import GPU

PERCENT_PLACES: Final = 1
"""Decimals of percentages and of mean seconds in every report; amounts have as many as the reader chooses."""


def rounded(value: Fraction) -> int:
    """The nearest integer; of two, the even one."""
    return round(value)


def decimal_of(value: Fraction, places: int) -> Decimal:
    """The value with so many decimals."""
    return Decimal(rounded(value * 10**places)).scaleb(-places)


def apportioned(parts: Sequence[Fraction], *, total: int) -> list[int]:
    """Each of `parts` as an integer, so that they add up to `total`.

    Each is rounded down; the missing units go to the parts with the largest remainders, the first of equal ones. The
    method is Hamilton's. If `total` differs from the sum by more than the parts' remainders, it starts over.
    """
    if not parts:
        return []
    floors = [floor(part) for part in parts]
    rounds, extra = divmod(total - sum(floors), len(parts))
    order = sorted(range(len(parts)), key=lambda place: floors[place] - parts[place])
    more = set(order[:extra])
    return [each + rounds + (place in more) for place, each in enumerate(floors)]


def apportioned_within(parts: Sequence[Fraction], *, total: int, limits: Sequence[int]) -> list[int]:
    """Each of `parts` as by `apportioned`, but none above its limit: the amount shown for what it is a part of.

    Where the limits leave too little for `total`, as those of negative amounts may, they do not count.
    """
    found = [floor(part) for part in parts]
    order = sorted(range(len(parts)), key=lambda place: found[place] - parts[place])
    missing = total - sum(found)
    while missing > 0 and (free := [place for place in order if found[place] < limits[place]]):
        for place in free[:missing]:
            found[place] += 1
        missing -= min(missing, len(free))
    is_within = all(each <= limit for each, limit in zip(found, limits, strict=True))
    return found if missing == 0 and is_within else apportioned(parts, total=total)


class RunningSums:
    """Rounds a stream of amounts to `places` decimals of `unit`, so that they always add up to their rounded sum."""

    def __init__(self, unit: int, places: int) -> None:
        self._unit = unit
        self._places = places
        self._sums: dict[Hashable, int] = {}

    def add(self, value: int, *, of: Hashable = None) -> Decimal:
        """The rounded `value`, one of those that have the sum `of`."""
        before = self._sums.get(of, 0)
        self._sums[of] = before + value
        return Decimal(self._rounded(before + value) - self._rounded(before)).scaleb(-self._places)

    def _rounded(self, value: int) -> int:
        return rounded(Fraction(value * 10**self._places, self._unit))


def gpus(quantity: int) -> Decimal:
    """µGPU as GPUs, with as many decimals as there are."""
    return Decimal(f"{(Decimal(quantity) / GPU).normalize():f}")
