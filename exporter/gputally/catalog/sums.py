"""Sums of series by a subset of their labels, also as the buckets of histograms.

The groups are computed once, not at every scrape.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from gputally.accounting.totals.series import Labels
from gputally.catalog.metric import HistogramRow
from gputally.model.units import US_PER_SECOND


class Groups(NamedTuple):
    """The `labels` of each group, the index of each group by labels, and the group index of each series."""

    labels: tuple[Labels, ...]
    indexes: dict[Labels, int]
    members: list[int]

    def sums(self, values: Sequence[int]) -> list[int]:
        """The sum of the series' values by group."""
        sums = [0] * len(self.labels)
        if not any(values):
            return sums
        for index, value in zip(self.members, values, strict=True):
            sums[index] += value
        return sums


class Grouping:
    """Groups series by `key`; returns the same object for the same labels object."""

    def __init__(self, key: Callable[[Labels], Labels]) -> None:
        self._key = key
        self._latest: tuple[Sequence[Labels], Groups] = ((), Groups((), {}, []))

    def of(self, labels: Sequence[Labels]) -> Groups:
        """The groups of a family's series, in order of first appearance."""
        if labels is not self._latest[0]:
            keys = [self._key(each) for each in labels]
            indexes = {key: index for index, key in enumerate(dict.fromkeys(keys))}
            self._latest = (labels, Groups(tuple(indexes), indexes, [indexes[key] for key in keys]))
        return self._latest[1]


def bounds_of(seconds: Sequence[int]) -> tuple[str, ...]:
    """The upper bounds as labels of counters; the last one has no limit."""
    return *map(str, seconds), "+Inf"


def histogram_of(
    labels: Labels, counts: Mapping[Labels, int], bounds: Sequence[str], *, sum_us: int, created_us: int | None
) -> HistogramRow:
    """The histogram of one group; `counts` are by its labels and the upper bound."""
    cumulative = accumulate(counts.get((*labels, bound), 0) for bound in bounds)
    return HistogramRow(
        labels=labels,
        buckets=tuple((_shown(bound), count) for bound, count in zip(bounds, cumulative, strict=True)),
        sum=sum_us / US_PER_SECOND,
        created_us=created_us,
    )


def _shown(bound: str) -> str:
    """Upper bounds as floats, the way Prometheus compares them."""
    return bound if bound == "+Inf" else f"{bound}.0"
