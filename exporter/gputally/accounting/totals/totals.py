"""Published counters: lines a + b·t by label group that never decrease, across corrections and restarts."""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Final

from gputally.accounting.totals.label_limiter import LabelLimiter, Value
from gputally.accounting.totals.series import Family, Labels, Published, Series, is_shown
from gputally.accounting.totals.total import LABELS, Lines, Total
from gputally.model.allocation import Segment
from gputally.model.node_record import CapacityState
from gputally.model.price import Price

_GROWTH: Final = (Total.ALLOCATED, Total.CAPACITY, Total.MEASURED)
"""Families that show whether a label value is in use. Waits do not: anyone may create pods that are never bound."""
UNKNOWN_PURCHASE: Final = "unknown"
ByState = dict[str, int]


class Netting:
    """Adds up equal changes, so that thousands of similar pods or slices are posted once."""

    def __init__(self) -> None:
        self._lines: dict[tuple[Labels, Price | None], tuple[int, int, int]] = {}

    def add(self, labels: Labels, price: Price | None, rate: int, span: tuple[int, int | None], *, at_us: int) -> None:
        """Accrue `rate` per µs over [start, end), without end if it is None; a negative rate takes back."""
        start_us, end_us = span
        a, b, first_us = self._lines.get((labels, price), (0, 0, at_us))
        if end_us is None:
            self._lines[labels, price] = a - rate * start_us, b + rate, first_us
        else:
            self._lines[labels, price] = a + rate * max(0, end_us - start_us), b, first_us

    def replace(self, before: Iterable[Segment], after: Iterable[Segment], *, from_us: int, at_us: int) -> None:
        """Take back what former segments allocated from `from_us` on, and add the new ones."""
        for sign, segments in ((-1, before), (1, after)):
            for each in segments:
                span = max(each.start_us, from_us), each.end_us
                self.add(each.labels, each.price, sign * each.quantity, span, at_us=at_us)

    def drain(self) -> Iterator[tuple[Labels, Price | None, int, int, int]]:
        """Labels, price, a and b of each line since the last call, and the time of its first change."""
        lines, self._lines = self._lines, {}
        return ((*key, *line) for key, line in lines.items())


def purchased(labels: Labels, price: Price | None) -> Labels:
    """Tier, tenant and purchase option of allocated time; `unknown` without a price."""
    return (*labels[:2], price.purchase.value if price else UNKNOWN_PURCHASE)


class Totals:
    """All counters of the fleet. They exclude everything before `accounting_start_us`.

    A new series is published as 0 for `zero_us`, so that every scraper sees its start. Its creation time is
    `resumed_us` at the earliest, when this process resumed. Series with a label that `limiter` has evicted are kept,
    but not published.
    """

    def __init__(
        self,
        *,
        accounting_start_us: int,
        evaluated_us: int = 0,
        resumed_us: int = 0,
        zero_us: int = 0,
        series: Mapping[tuple[Total, Labels], Series] | None = None,
        limiter: LabelLimiter | None = None,
    ) -> None:
        self.accounting_start_us = accounting_start_us
        self.evaluated_us = evaluated_us
        self.series: dict[tuple[Total, Labels], Series] = dict(series or {})
        self.changed: set[tuple[Total, Labels]] = set()
        self._resumed_us = resumed_us
        self._zero_us = zero_us
        self._limiter = limiter
        self._sorted_out = -1
        """The limiter's `state` at the last `_sort_out`."""
        self._families = {total: Family() for total in Total}
        for (total, labels), each in self.series.items():
            self._families[total].add(labels, each)
        self._allocated = Netting()
        self._looked = self._amounts()

    def declare(self, total: Total, labels: Labels, *, at_us: int) -> Series:
        """The series with these labels, created if new, so that it is exported as 0 before it counts."""
        key = (total, labels)
        series = self.series.get(key)
        if series is None:
            shown_us = self._shown_us(at_us) if self._exports(total, labels) else None
            created_us = max(at_us, self._resumed_us)
            series = Series(created_us=created_us, floor_us=self.evaluated_us, shown_us=shown_us)
            self.series[key] = series
            self._families[total].add(labels, series)
            self.changed.add(key)
        return series

    def count(self, total: Total, labels: Labels, amount: int, *, at_us: int) -> None:
        """Add an amount; a negative one takes back what was counted by mistake."""
        self._change(total, labels, at_us=at_us).a += amount

    def accrue(self, total: Total, labels: Labels, rate: int, span: tuple[int, int | None], *, at_us: int) -> None:
        """Accrue `rate` per µs over [start, end), without end if it is None; a negative rate takes back."""
        start_us, end_us = max(span[0], self.accounting_start_us), span[1]
        series = self._change(total, labels, at_us=at_us)
        if end_us is None:
            series.a -= rate * start_us
            series.b += rate
        elif end_us > start_us:
            series.a += rate * (end_us - start_us)

    def allocate(self, before: Iterable[Segment], after: Iterable[Segment], *, at_us: int) -> None:
        """Replace the allocated time and cost of former segments by new ones; deferred until the totals are read."""
        self._allocated.replace(before, after, from_us=self.accounting_start_us, at_us=at_us)

    def shift(self, total: Total, labels: Labels, a: int, b: int, *, at_us: int) -> None:
        """Add the line a + b·t."""
        series = self._change(total, labels, at_us=at_us)
        series.a += a
        series.b += b

    def _post_allocated(self) -> None:
        for labels, price, a, b, at_us in self._allocated.drain():
            self.shift(Total.ALLOCATED, labels, a, b, at_us=at_us)
            self.shift(Total.PURCHASED, purchased(labels, price), a, b, at_us=at_us)
            if price is None:
                self.shift(Total.UNPRICED, labels[:3], a, b, at_us=at_us)
            else:
                self.shift(Total.COST, (*labels, price.currency), price.cost(a), price.cost(b), at_us=at_us)

    def close(self, total: Total, *, at_us: int) -> None:
        """Make everything that accrues in a family final as of `at_us`; what continues is accrued anew."""
        for labels, series in self.truth(total):
            if series.b:
                changing = self._change(total, labels, at_us=at_us)
                changing.a, changing.b = series.at(at_us), 0

    def publish(self, now_us: int) -> dict[Total, Published]:
        """Evaluate every series at `now_us`, or just after the last evaluation if the clock stepped back.

        No two evaluations are at the same instant: a correction between them must not reduce what the first one
        published.
        """
        self._post_allocated()
        self._sort_out(now_us)
        before_us, self.evaluated_us = self.evaluated_us, max(now_us, self.evaluated_us + 1)
        return {
            total: family.evaluated(self.evaluated_us, before_us=before_us) for total, family in self._families.items()
        }

    def withdraw(self) -> None:
        """Undo the last evaluation, which was not published: new series have not started."""
        for total, family in self._families.items():
            self.changed.update((total, labels) for labels in family.postpone(self._shown_us(self.evaluated_us)))

    def touch_all(self) -> None:
        """Mark every series as changed."""
        self.changed.update(self.series)

    def drain(self) -> dict[tuple[Total, Labels], Series | None]:
        """Copies of the series changed since the last call; None for dropped ones."""
        self._post_allocated()
        changed = {key: copy(self.series.get(key)) for key in self.changed}
        self.changed.clear()
        return changed

    def truth(self, total: Total) -> Iterator[tuple[Labels, Series]]:
        """The series of one family by labels, including withheld ones."""
        self._post_allocated()
        family = self._families[total]
        yield from zip(family.labels, family.series, strict=True)
        yield from family.withheld.items()

    def lines(self, totals: Iterable[Total]) -> Lines:
        """The sums of these families, including withheld series; costs of all currencies together."""
        self._post_allocated()
        return {total: self._families[total].line for total in totals}

    def withheld(self, total: Total) -> int:
        """The sum of the withheld series of a family at the last evaluation."""
        return sum(series.at(self.evaluated_us) for series in self._families[total].withheld.values())

    def growth(self) -> tuple[set[Value], set[Value]]:
        """The label values that have grown since the last call, and all label values with amounts."""
        before, self._looked = self._looked, self._amounts()
        grown: set[Value] = set()
        there: set[Value] = set()
        for (total, labels), a in self._looked.items():
            b = self.series[total, labels].b
            if a or b:
                values = tuple(zip(LABELS[total], labels, strict=False))
                there.update(values)
                if b or before.get((total, labels)) != a:
                    grown.update(values)
        return grown, there

    def _amounts(self) -> dict[tuple[Total, Labels], int]:
        """The final amount of each series, in the families that show whether a value is in use.

        Withheld ones too: a value that returns grows before the next evaluation publishes it again.
        """
        return {(total, labels): series.a for total in _GROWTH for labels, series in self.truth(total)}

    def _exports(self, total: Total, labels: Labels) -> bool:
        return self._limiter is None or all(map(self._limiter.exports, LABELS[total], labels))

    def _shown_us(self, since_us: int) -> int:
        """The time from which the value of a newly exported series is published."""
        return max(since_us, self.evaluated_us, self._resumed_us) + self._zero_us

    def _sort_out(self, now_us: int) -> None:
        """Publish the series of all admitted label values, and withhold the others."""
        if self._limiter is None or self._limiter.state == self._sorted_out:
            return
        self._sorted_out = self._limiter.state
        for total, family in self._families.items():
            leaving = {labels for labels in family.labels if not self._exports(total, labels)}
            for labels in leaving:
                self._change(total, labels, at_us=now_us)
            for labels in [labels for labels in family.withheld if self._exports(total, labels)]:
                series = family.withheld.pop(labels)
                series.shown_us = self._shown_us(now_us)
                family.add(labels, series)
                self.changed.add((total, labels))
            if leaving:
                family.withhold(leaving)
            self._drop(total, family)

    def _drop(self, total: Total, family: Family) -> None:
        """Drop withheld series of values that are no longer kept; their sum is kept under an empty value.

        State and currency stay: amounts with different ones must not be added.
        """
        keeps = self._limiter.keeps if self._limiter else None
        for labels in [each for each in family.withheld if keeps and not all(map(keeps, LABELS[total], each))]:
            series = family.withheld[labels]
            if series.b == 0:
                bounded = len(LABELS[total])
                rest = ("",) * bounded + labels[bounded:]
                self.count(total, rest, series.a, at_us=series.created_us)
                del family.withheld[labels], self.series[total, labels]
                self.changed.add((total, labels))

    def _change(self, total: Total, labels: Labels, *, at_us: int) -> Series:
        """The series, with its last published value stored before its line changes."""
        key = (total, labels)
        series = self.series.get(key)
        if series is None:
            return self.declare(total, labels, at_us=at_us)
        if series.floor_us != self.evaluated_us:
            if is_shown(series, self.evaluated_us):
                series.floor = max(series.floor, series.at(self.evaluated_us))
            series.floor_us = self.evaluated_us
        self.changed.add(key)
        return series


def post_priced(totals: Totals, lines: Netting, *, time: Total, cost: Total, unpriced: Total) -> None:
    """Add what has accrued since the last call to the family of `time`, and to that of `cost` or of what has none."""
    for labels, price, a, b, at_us in lines.drain():
        totals.shift(time, labels, a, b, at_us=at_us)
        if price is None:
            totals.shift(unpriced, labels, a, b, at_us=at_us)
        else:
            totals.shift(cost, (*labels, price.currency), price.cost(a), price.cost(b), at_us=at_us)


def capacity_by_state(totals: Totals, total: Total, *, at_us: int) -> ByState:
    """The sums of a family of capacity at that time by state, over all other labels."""
    found: ByState = {}
    for labels, series in totals.truth(total):
        found[labels[2]] = found.get(labels[2], 0) + series.at(at_us)
    return found


def offered_capacity(sums: ByState) -> int:
    """What the nodes offered: all states but the allocations beyond it."""
    return sum(sums.values()) - 2 * sums.get(CapacityState.OVERCOMMITTED, 0)
