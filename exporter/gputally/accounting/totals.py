"""Published counters: lines a + b·t per label group that never fall, across corrections and restarts."""

from collections.abc import Iterator, Mapping
from copy import copy
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

Labels = tuple[str, ...]


class Total(StrEnum):
    """The families of counters. Values are GPU-time (µs·µGPU), cost (GPU-time x pico-rate), counts, or as said."""

    ALLOCATED = "allocated"
    COST = "cost"
    UNPRICED = "unpriced"
    CAPACITY = "capacity"
    CAPACITY_COST = "capacity_cost"
    PHYSICAL = "physical"
    """Physical GPUs by the log of node facts alone: the other side of the conservation law."""
    PREEMPTIONS = "preemptions"
    PREEMPTED = "preempted"
    """µGPU that victims held."""
    SCHEDULED = "scheduled"
    """Pods bound, by tier and upper bound of the time it took (s), not cumulative."""
    SCHEDULING_TIME = "scheduling_time"
    """Sum of the times to schedule, µs."""
    BLIND = "blind"
    """GPU-time inside blind intervals: what may have been allocated beyond what was charged."""
    MEASURED = "measured"
    """Allocated time for which agents know the utilisation."""
    USED = "used"
    BURST = "burst"
    """The part of what was used that lies above the share allocated."""
    IDLE_COST = "idle_cost"
    ENERGY = "energy"
    """mJ, of what pods held."""
    UNRESOLVED = "unresolved"
    """Measured time of holders that are no pod the API told of."""
    UNATTRIBUTED = "unattributed"
    """Use of GPUs that nobody held."""
    UNHELD_ENERGY = "unheld_energy"
    """mJ, of what nobody held."""


class Series(Struct):
    """One counter: its true value at t is `a + b·t`.

    `floor` is what was published at `floor_us`, the last evaluation before the line changed; the value
    published at t is max(true value, floor). `exposed_us` is the evaluation at which it first appeared, as 0.
    """

    created_us: int
    a: int = 0
    b: int = 0
    floor: int = 0
    floor_us: int = 0
    exposed_us: int | None = None

    def at(self, us: int) -> int:
        """The true value at `us`."""
        return self.a + self.b * us


class Point(NamedTuple):
    """One exported value, with what it is ahead of the truth and what it grows by per µs."""

    labels: Labels
    value: int
    ahead: int
    slope: int
    created_us: int


class Published(Struct, frozen=True):
    """A family at one evaluation, by column: the series of a scrape go by without an object for each.

    `labels` stays the same object from one evaluation to the next as long as no series joins.
    """

    labels: tuple[Labels, ...]
    values: list[int]
    truths: list[int]
    slopes: list[int]
    created_us: list[int]

    def __iter__(self) -> Iterator[Point]:
        return map(Point, self.labels, self.values, self.aheads, self.slopes, self.created_us)

    @property
    def aheads(self) -> list[int]:
        """By how much each value is ahead of the truth."""
        if self.values == self.truths:  # as nearly always
            return [0] * len(self.values)
        return [max(0, value - truth) for value, truth in zip(self.values, self.truths, strict=True)]


class _Family:
    """The series of one family, in order of their declaration."""

    def __init__(self) -> None:
        self.series: list[Series] = []
        self.unexposed: list[int] = []
        """Indexes of the series that were never published."""
        self._labels: list[Labels] = []
        self._shown: tuple[Labels, ...] = ()

    @property
    def labels(self) -> tuple[Labels, ...]:
        """Those of all series."""
        if len(self._shown) != len(self._labels):
            self._shown = tuple(self._labels)
        return self._shown

    def add(self, labels: Labels, series: Series) -> None:
        """A series joins."""
        if series.exposed_us is None:
            self.unexposed.append(len(self.series))
        self.series.append(series)
        self._labels.append(labels)


class Totals:
    """All counters of the fleet. Everything before `opened_us` is left out: the books were not open yet."""

    def __init__(
        self, *, opened_us: int, evaluated_us: int = 0, series: Mapping[tuple[Total, Labels], Series] | None = None
    ) -> None:
        self.opened_us = opened_us
        self.evaluated_us = evaluated_us
        self.series: dict[tuple[Total, Labels], Series] = dict(series or {})
        self.changed: set[tuple[Total, Labels]] = set()
        self._families = {total: _Family() for total in Total}
        for (total, labels), each in self.series.items():
            self._families[total].add(labels, each)

    def declare(self, total: Total, labels: Labels, *, at_us: int) -> Series:
        """The series of these labels, created when it is new, so that it is exported as 0 before it counts."""
        key = (total, labels)
        series = self.series.get(key)
        if series is None:
            series = self.series[key] = Series(created_us=at_us, floor_us=self.evaluated_us)
            self._families[total].add(labels, series)
            self.changed.add(key)
        return series

    def count(self, total: Total, labels: Labels, amount: int, *, at_us: int) -> None:
        """Add a plain amount; a negative one takes back what was counted by mistake."""
        self._change(total, labels, at_us=at_us).a += amount

    def accrue(self, total: Total, labels: Labels, rate: int, span: tuple[int, int | None], *, at_us: int) -> None:
        """Add `rate` per µs over the span [start, end), for ever if its end is None; a negative rate takes back."""
        start_us, end_us = max(span[0], self.opened_us), span[1]
        series = self._change(total, labels, at_us=at_us)
        if end_us is None:
            series.a -= rate * start_us
            series.b += rate
        elif end_us > start_us:
            series.a += rate * (end_us - start_us)

    def shift(self, total: Total, labels: Labels, a: int, b: int, *, at_us: int) -> None:
        """Add the line a + b·t."""
        series = self._change(total, labels, at_us=at_us)
        series.a += a
        series.b += b

    def close(self, total: Total, *, at_us: int) -> None:
        """Make all that accrues in a family final as of `at_us`; what goes on is accrued anew from there."""
        for labels, series in self.truth(total):
            if series.b:
                changing = self._change(total, labels, at_us=at_us)
                changing.a, changing.b = series.at(at_us), 0

    def publish(self, now_us: int) -> dict[Total, Published]:
        """Evaluate every series at `now_us`, or just after the last evaluation if the clock stepped back.

        No two evaluations are of one instant: a correction between them must not take back what the first published.
        """
        self.evaluated_us = max(now_us, self.evaluated_us + 1)
        return {total: self._published(total, family) for total, family in self._families.items()}

    def withdraw(self, at_us: int) -> None:
        """The evaluation at `at_us` was not shown after all: what appeared in it is still to be exposed as 0."""
        for total, family in self._families.items():
            for index, series in enumerate(family.series):
                if series.exposed_us == at_us:
                    series.exposed_us = None
                    family.unexposed.append(index)
                    self.changed.add((total, family.labels[index]))

    def drain(self) -> dict[tuple[Total, Labels], Series]:
        """Copies of the series changed since the last call."""
        changed = {key: copy(self.series[key]) for key in self.changed}
        self.changed.clear()
        return changed

    def truth(self, total: Total) -> Iterator[tuple[Labels, Series]]:
        """The series of one family, by labels."""
        return zip(self._families[total].labels, self._families[total].series, strict=True)

    def _published(self, total: Total, family: _Family) -> Published:
        now_us = self.evaluated_us
        truths = [series.a + series.b * now_us for series in family.series]
        values = list(map(max, truths, [series.floor for series in family.series]))
        for index in family.unexposed:
            values[index] = 0
            family.series[index].exposed_us = now_us
            self.changed.add((total, family.labels[index]))
        family.unexposed.clear()
        slopes = [series.b for series in family.series]
        return Published(family.labels, values, truths, slopes, [series.created_us for series in family.series])

    def _change(self, total: Total, labels: Labels, *, at_us: int) -> Series:
        """The series, with what it last published remembered before its line changes."""
        key = (total, labels)
        series = self.series.get(key)
        if series is None:
            return self.declare(total, labels, at_us=at_us)
        if series.floor_us != self.evaluated_us:
            if series.exposed_us is not None and series.exposed_us != self.evaluated_us:
                series.floor = max(series.floor, series.at(self.evaluated_us))
            series.floor_us = self.evaluated_us
        self.changed.add(key)
        return series
