"""The series of one family of counters, with their true and their published values."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from msgspec import Struct

Labels = tuple[str, ...]


class Series(Struct):
    """One counter: its true value at t is `a + b·t`.

    `floor` was published at `floor_us`, the last evaluation before the line changed. At t, `floor` is published before
    `shown_us`, and max(true value, floor) from then on. `shown_us` is None while the series is not published because
    one of its labels is evicted.
    """

    created_us: int
    a: int = 0
    b: int = 0
    floor: int = 0
    floor_us: int = 0
    shown_us: int | None = 0

    def at(self, us: int) -> int:
        """The true value at `us`."""
        return self.a + self.b * us


class Point(NamedTuple):
    """One exported value, its overcount, and its growth per µs."""

    labels: Labels
    value: int
    ahead: int
    slope: int
    created_us: int


class Published(Struct, frozen=True):
    """A family at one evaluation, in columns: a scrape creates no object per series.

    `labels` is the same object in consecutive evaluations unless series were added.
    """

    labels: tuple[Labels, ...]
    values: list[int]
    truths: list[int]
    slopes: list[int]
    created_us: list[int]

    def __iter__(self) -> Iterator[Point]:
        return map(Point, self.labels, self.values, self.overcounts, self.slopes, self.created_us)

    @property
    def overcount(self) -> int:
        """The sum of all overcounts."""
        return 0 if self.values == self.truths else sum(self.overcounts)

    @property
    def overcounts(self) -> list[int]:
        """The overcount of each value."""
        if self.values == self.truths:  # the usual case
            return [0] * len(self.values)
        return [max(0, value - truth) for value, truth in zip(self.values, self.truths, strict=True)]


class Family:
    """The exported series of one family in order of creation, and the withheld ones."""

    def __init__(self) -> None:
        self.series: list[Series] = []
        self.withheld: dict[Labels, Series] = {}
        self._labels: list[Labels] = []
        self._shown: tuple[Labels, ...] | None = ()
        self._young: list[int] = []
        """Indexes of series whose value the evaluation before the last did not publish."""

    @property
    def labels(self) -> tuple[Labels, ...]:
        """The labels of all exported series."""
        if self._shown is None:
            self._shown = tuple(self._labels)
        return self._shown

    @property
    def line(self) -> tuple[int, int]:
        """The sum of all series, withheld ones too, as (a, b)."""
        series = [*self.series, *self.withheld.values()]
        return sum([each.a for each in series]), sum([each.b for each in series])

    def add(self, labels: Labels, series: Series) -> None:
        """Add a series."""
        if series.shown_us is None:
            self.withheld[labels] = series
            return
        self._young.append(len(self.series))
        self.series.append(series)
        self._labels.append(labels)
        self._shown = None

    def withhold(self, leaving: Collection[Labels]) -> None:
        """Withhold series; they return unchanged."""
        pairs = list(zip(self._labels, self.series, strict=True))
        self.series, self._labels, self._young, self._shown = [], [], [], None
        for labels, series in pairs:
            if labels in leaving:
                series.shown_us = None
            self.add(labels, series)

    def postpone(self, shown_us: int) -> Iterator[Labels]:
        """Publish the values of new series only from `shown_us` on; yields these series."""
        for index in self._young:
            self.series[index].shown_us = shown_us
            yield self._labels[index]

    def evaluated(self, now_us: int, *, before_us: int) -> Published:
        """All exported series at `now_us`; the previous evaluation was at `before_us`."""
        if not self.series:  # most families of most clusters
            return Published((), [], [], [], [])
        truths = [series.a + series.b * now_us for series in self.series]
        floors = [series.floor for series in self.series]
        values = [truth if truth > floor else floor for truth, floor in zip(truths, floors, strict=True)]  # noqa: FURB136 - max() takes three times as long
        self._young = [index for index in self._young if not is_shown(self.series[index], before_us)]
        for index in self._young:
            if not is_shown(self.series[index], now_us):
                values[index] = self.series[index].floor
        slopes = [series.b for series in self.series]
        return Published(self.labels, values, truths, slopes, [series.created_us for series in self.series])


def is_shown(series: Series, at_us: int) -> bool:
    """Whether an evaluation at `at_us` publishes the series' value, not only its start at 0."""
    return series.shown_us is not None and series.shown_us <= at_us
