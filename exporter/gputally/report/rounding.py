"""Rounding by largest remainder: rounded parts add up to the rounded total."""

from collections.abc import Sequence
from fractions import Fraction
from math import floor


def rounded(value: Fraction) -> int:
    """The nearest integer; of two, the even one."""
    return round(value)


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
