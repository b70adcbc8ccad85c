"""What a budget will have spent by the end of its period, from the daily totals of the past weeks."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, isqrt
from typing import Final, NamedTuple

MIN_DAYS: Final = 3
"""Without so many full days there is no forecast."""
WEEKDAY_DAYS: Final = 14
"""From so many full days on, each weekday has a mean of its own."""
MAX_DAYS: Final = 28
"""Full days that count."""
_WEEK: Final = 7
_MAX_CORRELATION: Final = Fraction(9, 10)
_T: Final = (
    *("3.078", "1.886", "1.638", "1.533", "1.476", "1.440", "1.415", "1.397", "1.383", "1.372", "1.363"),
    *("1.356", "1.350", "1.345", "1.341", "1.337", "1.333", "1.330", "1.328", "1.325", "1.323"),
)
"""The 0.9 quantile of Student's t for 1 to 21 degrees of freedom: the bounds hold with 80 %."""


class PastDay(NamedTuple):
    """A full day that is over, with what was spent on it. The weekday is 0 on Monday."""

    weekday: int
    spent: int


class ComingDay(NamedTuple):
    """A day of the rest of a period, up to `end_us`; of the current day, only a `part` is still to come."""

    weekday: int
    part: Fraction
    end_us: int


class ForecastPoint(NamedTuple):
    """What will have been spent at an instant."""

    at_us: int
    expected: Fraction
    lower: Fraction
    upper: Fraction


def forecast(past: Sequence[PastDay], coming: Iterable[ComingDay], *, spent: int, now_us: int) -> list[ForecastPoint]:
    """What will have been spent: `spent` at `now_us`, then a point at the end of each coming day.

    `past` are consecutive full days up to the current one, of which the last `MAX_DAYS` count. Empty if they are fewer
    than `MIN_DAYS`.

    A coming day is expected to spend the mean of the past days, or from `WEEKDAY_DAYS` on that of its weekday. The
    interval is the 80 % prediction interval of a sum: t·s·sqrt(v·(M + Σ m²/n)), where s² is the variance of the past
    days about their means, t the quantile of Student's t for its degrees of freedom, M the number of coming days, m
    those with the same mean, and n the past days of that mean. The term M is the chance of the coming days, the other
    the error of the means. v = (1 + r)/(1 - r) widens it where busy days follow busy days: r is the correlation of
    each day with the one before, from 0 to 0.9. What is spent cannot fall, so the lower bound is at least `spent`.
    """
    days = past[-MAX_DAYS:]
    if len(days) < MIN_DAYS:
        return []
    pattern = _Pattern(days)
    found, expected, counts = [ForecastPoint(now_us, *[Fraction(spent)] * 3)], Fraction(spent), dict[int, Fraction]()
    for day in coming:
        group = pattern.group(day.weekday)
        expected += day.part * pattern.means[group]
        counts[group] = counts.get(group, Fraction()) + day.part
        width = pattern.width(counts)
        found.append(ForecastPoint(day.end_us, expected, max(Fraction(spent), expected - width), expected + width))
    return found


def reached(points: Iterable[tuple[int, Fraction]], limit: int) -> int | None:
    """When a growing sum with these values at instants (µs) reaches `limit`; None if it never exceeds it.

    Between two instants, it grows evenly.
    """
    for (from_us, before), (to_us, after) in pairwise(points):
        if after > limit:
            return from_us + int((to_us - from_us) * (limit - before) / (after - before))
    return None


class _Pattern:
    """The means of past days, by weekday if there are enough, and how single days differ from them."""

    def __init__(self, days: Sequence[PastDay]) -> None:
        self._by_weekday = len(days) >= WEEKDAY_DAYS
        groups: dict[int, list[int]] = {}
        for day in days:
            groups.setdefault(self.group(day.weekday), []).append(day.spent)
        self._sizes = {group: len(values) for group, values in groups.items()}
        self.means = {group: Fraction(sum(values), len(values)) for group, values in groups.items()}
        rest = [day.spent - self.means[self.group(day.weekday)] for day in days]
        squares = sum((each * each for each in rest), Fraction())
        freedom = len(days) - len(groups)
        neighbours = sum((one * other for one, other in pairwise(rest)), Fraction())
        correlation = min(max(neighbours / squares, Fraction()), _MAX_CORRELATION) if squares else Fraction()
        self._scale = Fraction(_T[freedom - 1]) ** 2 * squares / freedom * (1 + correlation) / (1 - correlation)

    def group(self, weekday: int) -> int:
        """The group of days with one mean."""
        return weekday if self._by_weekday else 0

    def width(self, counts: dict[int, Fraction]) -> int:
        """Half of the interval of the sum of so many coming days by group, rounded up."""
        variance = sum((count + count * count / self._sizes[group] for group, count in counts.items()), Fraction())
        square = ceil(self._scale * variance)
        root = isqrt(square)
        return root + (root * root < square)
