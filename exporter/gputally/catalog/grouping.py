"""Series summed by some of their labels: which belong together is worked out once, not at every scrape."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gputally.accounting.totals.series import Labels


class Groups(NamedTuple):
    """The `labels` of each group, its place among them, and the place of each series' group."""

    labels: tuple[Labels, ...]
    places: dict[Labels, int]
    members: list[int]

    def sums(self, values: Sequence[int]) -> list[int]:
        """The values of the series, added up by group."""
        sums = [0] * len(self.labels)
        for place, value in zip(self.members, values, strict=True):
            sums[place] += value
        return sums


class Grouping:
    """Groups series by `key`; the answer stays the same object while the same labels are asked for."""

    def __init__(self, key: Callable[[Labels], Labels]) -> None:
        self._key = key
        self._latest: tuple[Sequence[Labels], Groups] = ((), Groups((), {}, []))

    def of(self, labels: Sequence[Labels]) -> Groups:
        """The groups of a family's series, in order of their first one."""
        if labels is not self._latest[0]:
            keys = [self._key(each) for each in labels]
            places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
            self._latest = (labels, Groups(tuple(places), places, [places[key] for key in keys]))
        return self._latest[1]
