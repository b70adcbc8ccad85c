"""Rounding by largest remainder: rounded parts add up to the rounded total."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm
from operator import le
from typing import Final, NamedTuple

from gputally.model.units import GPU

PERCENT_PLACES: Final = 1
"""Decimals of percentages and of mean seconds in every report; amounts have as many as the reader chooses."""


def rounded(value: Fraction) -> int:
    """The nearest integer; of two, the even one."""
    return round(value)


def quotient(number: int, unit: int) -> int:
    """The integer nearest to `number` divided by `unit`, which is positive; of two, the even one."""
    found, rest = divmod(number, unit)
    return found + (2 * rest > unit or (2 * rest == unit and found % 2 == 1))


def scaled(units: int, places: int) -> Decimal:
    """So many units of the last of `places` decimals."""
    return Decimal(units).scaleb(-places)


def decimal_of(value: Fraction, places: int) -> Decimal:
    """The value with so many decimals."""
    return Decimal(rounded(value * 10**places)).scaleb(-places)


class Column(NamedTuple):
    """Amounts with one denominator: each of `numbers` divided by `unit`, which is positive."""

    numbers: Sequence[int]
    unit: int

    def floors(self) -> list[int]:
        """Each amount rounded down."""
        return [number // self.unit for number in self.numbers]

    def by_remainder(self) -> list[int]:
        """The places of the amounts, those with the largest remainders first, in their order if these are equal."""
        remainders = [number % self.unit for number in self.numbers]
        return sorted(range(len(remainders)), key=remainders.__getitem__, reverse=True)


def column_in(values: Sequence[int], unit: int, *, places: int) -> Column:
    """Multiples of `unit` in units of the last of `places` decimals, as a column of the smallest integers."""
    shared = gcd(unit, 10**places)
    factor = 10**places // shared
    return Column([value * factor for value in values] if factor > 1 else values, unit // shared)


def column_of(amounts: Iterable[Fraction]) -> Column:
    """The amounts as a column."""
    found = list(amounts)
    unit = lcm(*(each.denominator for each in found))
    return Column([each.numerator * (unit // each.denominator) for each in found], unit)


def apportioned(parts: Column, *, total: int) -> list[int]:
    """Each of `parts` as an integer, so that they add up to `total`.

    Each is rounded down; the missing units go to the parts with the largest remainders, the first of equal ones. The
    method is Hamilton's. If `total` differs from the sum by more than the parts' remainders, it starts over.
    """
    found = parts.floors()
    if not found:
        return []
    rounds, extra = divmod(total - sum(found), len(found))
    if rounds:
        found = [each + rounds for each in found]
    for place in parts.by_remainder()[:extra] if extra else ():
        found[place] += 1
    return found


def apportioned_within(parts: Column, *, total: int, limits: Sequence[int]) -> list[int]:
    """Each of `parts` as by `apportioned`, but none above its limit: the amount shown for what it is a part of.

    Where the limits leave too little for `total`, as those of negative amounts may, they do not count.
    """
    found = parts.floors()
    missing = total - sum(found)
    order = parts.by_remainder() if missing > 0 else []
    while missing > 0 and (free := [place for place in order if found[place] < limits[place]]):
        for place in free[:missing]:
            found[place] += 1
        missing -= min(missing, len(free))
    return found if missing == 0 and all(map(le, found, limits)) else apportioned(parts, total=total)


def apportioned_columns(
    parts: Mapping[str, Column],
    totals: Mapping[str, int],
    limits_of: Callable[[str, Mapping[str, list[int]]], Sequence[int] | None],
) -> dict[str, list[int]]:
    """The columns of some rows as integers that add up to the total of each column.

    `limits_of` a column are what no part of it may exceed, which may depend on the columns before it; None of most.
    """
    columns = dict[str, list[int]]()
    for name, values in parts.items():
        if not totals[name] and not any(values.numbers):
            columns[name] = [0] * len(values.numbers)
        elif (limits := limits_of(name, columns)) is None:
            columns[name] = apportioned(values, total=totals[name])
        else:
            columns[name] = apportioned_within(values, total=totals[name], limits=limits)
    return columns


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
        return quotient(value * 10**self._places, self._unit)


def gpus(quantity: int) -> Decimal:
    """µGPU as GPUs, with as many decimals as there are."""
    return Decimal(f"{(Decimal(quantity) / GPU).normalize():f}")
