"""The running capacity account of one node, updated by late corrections."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gputally.accounting.facts.node_history import classes
from gputally.accounting.facts.release import NodeLife, PodNode
from gputally.accounting.nodes.capacity import CapacityTerms, extend, slices_of
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Netting, Totals
from gputally.model.allocation import Segment
from gputally.model.history import alike
from gputally.model.node_record import CapacitySlice, CapacityState, NodeRecord
from gputally.model.units import US_PER_HOUR

if TYPE_CHECKING:
    from gputally.model.price import Price

_WINDOW = 64
"""Slices that stay correctable before the older ones become final."""
_FINALIZE_US = 6 * US_PER_HOUR
"""How long a slice stays correctable, unless there are too many."""
_MOST = 512
"""Limit of slices (many short pods) and of facts (frequent relabelling); beyond it, the older half becomes final."""

_Span = tuple[int, int | None, int, "Price | None"]
"""Start and end (µs; None while it lasts), µGPU, and the price."""


class NodeAccount:
    """Capacity of one node incarnation, posted to the totals from `since_us` on.

    Time before `finalized_us` is final: later corrections of it only move time between allocated and free, so that the
    states still add up. Allocations are kept as `_steps`, the changes of the allocated µGPU by instant; those before
    `finalized_us` are summed at it.

    Events only record from when on the slices are outdated; `rebuild` recomputes that part, so the cost of an event
    does not depend on the length of the history.
    """

    def __init__(self, record: NodeRecord, totals: Totals, *, since_us: int) -> None:
        self.record = record
        self.finalized_us = since_us
        self.slices: list[CapacitySlice] = []
        self._steps: dict[int, int] = {}
        self._stale_us: int | None = 0
        self._labels = ("unknown", "none")
        self._price: Price | None = None
        self._physical: tuple[_Span, ...] = ()
        self._totals = totals
        self._pod_node: tuple[NodeRecord, PodNode] | None = None

    @property
    def pod_node(self) -> PodNode:
        """The `PodNode` of its pods; computed once for all of them."""
        record = self.record
        if self._pod_node is None or self._pod_node[0] is not record:
            life = NodeLife(record.gone_us, record.gone_by_us, record.unready)
            self._pod_node = record, PodNode(record.uid, record.name, classes(record.facts), life, record.created_us)
        return self._pod_node[1]

    @property
    def existed(self) -> NodeRecord:
        """The record with the end of its capacity: if that is in a gap, the end of its last allocation."""
        gone_us, by_us = self.record.gone_us, self.record.gone_by_us
        if gone_us is None or by_us is None or by_us <= gone_us:
            return self.record
        return replace(self.record, gone_us=max(gone_us, min(by_us, max(self._steps, default=gone_us))))

    def observe(self, record: NodeRecord) -> None:
        """Replace the facts of the node."""
        self.invalidate(_changed_us(self.record, record))
        self.record = record

    def invalidate(self, since_us: int) -> None:
        """Facts or prices may have changed: recompute everything from `since_us` on."""
        self._stale_us = since_us if self._stale_us is None else min(self._stale_us, since_us)

    def hold(self, before: Iterable[Segment], after: Iterable[Segment], *, at_us: int) -> bool:
        """Replace the former segments of a pod by its present ones; returns False if they are equal."""
        before, after = tuple(before), tuple(after)
        if self.finalized_us > self._totals.accounting_start_us:
            self._correct_final(before, after, at_us=at_us)
        return self.take_up(before, after)

    def take_up(self, before: Iterable[Segment], after: Iterable[Segment]) -> bool:
        """Add a restored pod whose final time is already accounted."""
        changes: dict[int, int] = {}
        for segments, sign in ((before, -1), (after, 1)):
            for segment in segments:
                quantity = sign * segment.quantity
                for step_us, change in ((segment.start_us, quantity), (segment.end_us, -quantity)):
                    if step_us is not None:
                        at_us = max(step_us, self.finalized_us)
                        changes[at_us] = changes.get(at_us, 0) + change
        return self.step(changes)

    def hand_over(self, successor: "NodeAccount", *, from_us: int) -> None:
        """Move allocations from `from_us` on to `successor`, but not before the end of the final time."""
        gone_us = self.record.gone_us
        final_us = self.finalized_us if gone_us is None else min(gone_us, self.finalized_us)
        successor.finalized_us = max(successor.finalized_us, final_us)
        from_us = max(from_us, final_us)
        passed = {at_us: quantity for at_us, quantity in self._steps.items() if at_us >= from_us}
        level = {from_us: self._stepped_before(from_us)}
        for changes in (level, passed):
            successor.step(changes)
            self.step({at_us: -quantity for at_us, quantity in changes.items()})

    def step(self, changes: Mapping[int, int]) -> bool:
        """Change the allocated µGPU at these instants; returns False if all changes are 0."""
        has_changed, steps = False, self._steps
        for at_us, change in changes.items():
            if change:
                has_changed = True
                if level := steps.get(at_us, 0) + change:
                    steps[at_us] = level
                else:
                    del steps[at_us]
                if self._stale_us is None or at_us < self._stale_us:
                    self._stale_us = at_us
        return has_changed

    def rebuild(self, terms: CapacityTerms, *, at_us: int) -> None:
        """Recompute the outdated slices, and update the totals."""
        if self._stale_us is None:
            return
        begin_us = max(self.finalized_us, self.record.facts[0][0])
        record = self.existed
        if self.record.gone_us is not None:
            self._stale_us = min(self._stale_us, self.record.gone_us)
        from_us = max(self._stale_us, begin_us)
        outdated = self._cut_off(from_us)
        allocated = self.slices[-1].allocated if self.slices else self._stepped_before(from_us)
        fresh = slices_of(record, self._steps, since_us=from_us, allocated=allocated, terms=terms)
        self._post(outdated, fresh, at_us=at_us)
        for each in fresh:
            extend(self.slices, each)
        self._remember(terms)
        self._post_physical(record, terms, at_us=at_us)
        self._stale_us = None
        self._finalize_old(terms, at_us=at_us)

    def _remember(self, terms: CapacityTerms) -> None:
        """Store the labels and price for corrections: those of the last slice, or the present ones without any."""
        if self.slices:
            self._labels, self._price = self.slices[-1].labels, self.slices[-1].price
        else:
            from_us, facts = self.record.facts[-1]
            self._labels, self._price = terms.limit(facts), terms.price_of(facts.asset, from_us)

    def _stepped_before(self, at_us: int) -> int:
        """The sum of all steps before `at_us`."""
        return sum(quantity for step_us, quantity in self._steps.items() if step_us < at_us)

    def _cut_off(self, from_us: int) -> list[CapacitySlice]:
        """Remove the slices from `from_us` on, and end the one that spans it."""
        index = bisect_left(self.slices, from_us, key=lambda each: each.start_us)
        outdated = self.slices[index:]
        del self.slices[index:]
        last = self.slices[-1] if self.slices else None
        if last and (last.end_us is None or last.end_us > from_us):
            self.slices[-1] = replace(last, end_us=from_us)
            outdated.insert(0, replace(last, start_us=from_us))
        return outdated

    def _post(self, outdated: Iterable[CapacitySlice], fresh: Iterable[CapacitySlice], *, at_us: int) -> None:
        lines = Netting()
        for slices, sign in ((outdated, -1), (fresh, 1)):
            for each in slices:
                for state, quantity in each.parts:
                    span = (each.start_us, each.end_us)
                    lines.add((*each.labels, state), each.price, sign * quantity, span, at_us=at_us)
        for labels, price, a, b, _ in lines.drain():
            if a or b:
                self._totals.shift(Total.CAPACITY, labels, a, b, at_us=at_us)
                if price:
                    cost_labels = (*labels, price.currency)
                    self._totals.shift(Total.CAPACITY_COST, cost_labels, price.cost(a), price.cost(b), at_us=at_us)

    def _post_physical(self, record: NodeRecord, terms: CapacityTerms, *, at_us: int) -> None:
        """Post the physical GPUs and their cost from the facts alone; the slices must add up to the same."""
        spans = tuple(_physical(record, self.finalized_us, terms))
        kept = alike(self._physical, spans)
        for sign, parts in ((-1, self._physical), (1, spans)):
            for start_us, end_us, quantity, price in parts[kept:]:
                span, rate = (start_us, end_us), sign * quantity
                self._totals.accrue(Total.PHYSICAL, (), rate, span, at_us=at_us)
                if price:
                    self._totals.accrue(Total.PHYSICAL_COST, (), price.cost(rate), span, at_us=at_us)
        self._physical = spans

    def _finalize_old(self, terms: CapacityTerms, *, at_us: int) -> None:
        if len(self.slices) > _MOST:
            self._finalize(self.slices[len(self.slices) // 2].start_us, terms)
        elif len(self.record.facts) > _MOST:
            self._finalize(self.record.facts[len(self.record.facts) // 2][0], terms)
        elif len(self.slices) > _WINDOW:
            self._finalize(at_us - _FINALIZE_US, terms)

    def _finalize(self, until_us: int, terms: CapacityTerms) -> None:
        """Make the time before `until_us` final: drop the slices that ended, and sum the steps before it."""
        gone_us = self.record.gone_us
        until_us = until_us if gone_us is None else min(until_us, gone_us)
        if until_us <= self.finalized_us:
            return
        self.finalized_us = until_us
        self._physical = tuple(_physical(self.existed, until_us, terms))
        outdated = sum(1 for from_us, _ in self.record.facts if from_us <= until_us) - 1
        self.record = replace(self.record, facts=self.record.facts[max(outdated, 0) :])
        lasting = (each for each in self.slices if each.end_us is None or each.end_us > until_us)
        self.slices = [replace(each, start_us=max(each.start_us, until_us)) for each in lasting]
        self._steps = {until_us: self._stepped_before(until_us + 1)} | {
            at: q for at, q in self._steps.items() if at > until_us
        }

    def _correct_final(self, before: Iterable[Segment], after: Iterable[Segment], *, at_us: int) -> None:
        gone_us = self.existed.gone_us
        existed_us = self.finalized_us if gone_us is None else min(gone_us, self.finalized_us)
        real = self.record.facts[-1][1].physical > 0
        self._correct(before, after, (0, existed_us), real=real, at_us=at_us)
        if existed_us < self.finalized_us:
            self._correct(before, after, (existed_us, self.finalized_us), real=False, at_us=at_us)

    def _correct(
        self, before: Iterable[Segment], after: Iterable[Segment], final: tuple[int, int], *, real: bool, at_us: int
    ) -> None:
        """Corrections of final time: what is allocated additionally was free, or else is overcommitted."""
        gpu_time = self._time_in(after, *final) - self._time_in(before, *final)
        if not gpu_time:
            return
        other = (CapacityState.FREE, -gpu_time) if real else (CapacityState.OVERCOMMITTED, gpu_time)
        for state, amount in ((CapacityState.ALLOCATED, gpu_time), other):
            labels = (*self._labels, state.value)
            self._totals.count(Total.CAPACITY, labels, amount, at_us=at_us)
            if self._price:
                cost_labels = (*labels, self._price.currency)
                self._totals.count(Total.CAPACITY_COST, cost_labels, self._price.cost(amount), at_us=at_us)

    def _time_in(self, segments: Iterable[Segment], from_us: int, until_us: int) -> int:
        """GPU-time of `segments` between the two instants, without the time before the accounting start."""
        found = 0
        for segment in segments:
            if segment.start_us < until_us:
                end_us = until_us if segment.end_us is None else min(segment.end_us, until_us)
                found += segment.quantity * max(
                    0, end_us - max(segment.start_us, from_us, self._totals.accounting_start_us)
                )
        return found


def _changed_us(before: NodeRecord, record: NodeRecord) -> int:
    """The earliest time from which the capacity may differ; the beginning if unknown."""
    kept = alike(before.facts, record.facts)
    changed = [facts[kept][0] for facts in (before.facts, record.facts) if kept < len(facts)] if kept else [0]
    return min([*changed, *(at for at in (before.gone_us, record.gone_us) if at is not None)], default=0)


def _physical(record: NodeRecord, since_us: int, terms: CapacityTerms) -> Iterator[_Span]:
    """Spans of constant physical GPUs and price between `since_us` and the node's end."""
    gone_us = record.gone_us
    changes = [from_us if gone_us is None else min(from_us, gone_us) for from_us, _ in record.facts[1:]]
    for (from_us, facts), end_us in zip(record.facts, (*changes, gone_us), strict=True):
        start_us = max(from_us, since_us)
        if end_us is None or start_us < end_us:
            starts = _cuts(start_us, end_us, terms.price_changes)
            for instant, until_us in zip(starts, (*starts[1:], end_us), strict=True):
                yield instant, until_us, facts.physical, terms.price_of(facts.asset, instant)


def _cuts(start_us: int, end_us: int | None, price_changes: tuple[int, ...]) -> tuple[int, ...]:
    """`start_us`, and the changes of prices between it and `end_us`."""
    until = len(price_changes) if end_us is None else bisect_left(price_changes, end_us)
    return start_us, *price_changes[bisect_right(price_changes, start_us) : until]
