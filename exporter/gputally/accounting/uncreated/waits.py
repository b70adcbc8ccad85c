"""Charges the GPU-seconds of pods that do not exist, from when it was observed that a workload lacks them.

An interruption, such as a restart, pauses a wait: until something confirms that it lasted, nothing is charged.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from gputally.accounting.base.limits import NamespaceLimit
from gputally.accounting.base.state_part import KeyedPart
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Netting, Totals, post_priced
from gputally.accounting.uncreated.missing_pods import Key
from gputally.model.kube.kinds import Limit
from gputally.model.price import PriceRange
from gputally.model.units import US_PER_HOUR
from gputally.model.waits import UncreatedPodsSegment, key_of

RowKey = tuple[str, str, int]
"""Namespace and UID of the workload, and the begin of the wait."""
_PAUSED_US: Final = US_PER_HOUR
"""How long a paused wait can be confirmed: as long as the API server keeps the Event that refused the pods."""


class UncreatedPodsBook(KeyedPart[UncreatedPodsSegment]):
    """The latest wait of each workload that lacks pods: it lasts, or is paused. The counters have what all amount to.

    Every change begins a new wait where the last one ends, so no second is charged twice.
    """

    name = "uncreated_waits"
    document_limit = Limit(12_000, 42_000)
    """Waits of Jobs, of Workloads and of refusals together."""
    kinds = ()

    def __init__(self, totals: Totals, *, is_on: bool) -> None:
        super().__init__()
        self._totals = totals
        self._is_on = is_on
        self._lines = Netting()
        self._at_least = Netting()
        self._rows: dict[RowKey, UncreatedPodsSegment | None] = {}
        self._paused: dict[str, int | None] = {}
        """When a pause is forgotten (µs), by key; None until the time is known."""

    def charge(self, wait: UncreatedPodsSegment, *, since_us: int, at_us: int) -> None:
        """From `at_us` on, a workload waits as in `wait`, whose times do not matter.

        A pause is charged, too, if the wait has lasted since before it, `since_us`. One of which more was known is left
        for the workload itself to confirm.
        """
        last = self.known.get(wait.key)
        if last and last.to_us is not None and wait.is_at_least and not last.is_at_least:
            return
        if last is None:
            self._begin(wait, max(at_us, self._totals.accounting_start_us), at_us=at_us)
            return
        if not wait.awaits_price:
            last = self._priced(last, wait.prices, at_us=at_us)
        if last.to_us is None and last.equals_but_for_time(wait):
            return
        is_pause = last.to_us is not None
        if is_pause and since_us > (last.to_us or 0):
            self.finish(wait.key, at_us=at_us)
            self._begin(wait, max(at_us, last.to_us or 0), at_us=at_us)
            return
        self._paused.pop(wait.key, None)
        begin_us = last.to_us if last.to_us is not None else max(at_us, last.from_us)
        if is_pause and last.equals_but_for_time(wait):
            self._put(last, replace(last, to_us=None), at_us=at_us)
        else:
            self._put(last, replace(last, to_us=begin_us), at_us=at_us)
            self._begin(wait, begin_us, at_us=at_us)

    def price(self, key: Key, prices: PriceRange, *, at_us: int) -> None:
        """What a wait costs was found out, just before it ends."""
        if last := self.known.get(key_of(*key)):
            self._priced(last, prices, at_us=at_us)

    def _priced(self, last: UncreatedPodsSegment, prices: PriceRange, *, at_us: int) -> UncreatedPodsSegment:
        """The wait with these prices for all of its time, if they were not found out yet."""
        if last.awaits_price:
            lowest, highest = prices
            last, before = replace(last, price=lowest, highest=highest, awaits_price=False), last
            self._put(before, last, at_us=at_us)
        return last

    def pause(self, key: Key, *, end_us: int, at_us: int) -> None:
        """The refusal of the pods is not confirmed since `end_us`; what else they waited for has ended at `at_us`."""
        last = self.known.get(key_of(*key))
        if last and last.is_queued:
            self.finish(last.key, at_us=at_us)
        elif last:
            self._pause(last.key, end_us=end_us, at_us=at_us)

    def _pause(self, key: str, *, end_us: int, at_us: int) -> None:
        last = self.known.get(key)
        if last and last.to_us is None:
            self._put(last, replace(last, to_us=max(end_us, last.from_us)), at_us=at_us)
            self._paused[key] = None

    def finish(self, key: str, *, at_us: int) -> None:
        """The wait has ended at `at_us`, or when it was paused."""
        self._pause(key, end_us=at_us, at_us=at_us)
        self._paused.pop(key, None)
        self._remove(key)

    def lacks_nothing(self, key: Key, *, is_known: bool, at_us: int) -> None:
        """Nothing says that the workload lacks pods: that ends a wait, but a pause only if `is_known`."""
        last = self.known.get(key_of(*key))
        if last and (is_known or last.to_us is None):
            self.finish(last.key, at_us=at_us)

    def of(self, key: Key) -> UncreatedPodsSegment | None:
        """The wait of the workload that lasts, or is paused."""
        return self.known.get(key_of(*key))

    def advance(self, now_us: int) -> None:
        """See `StatePart.advance`."""
        for key, until_us in list(self._paused.items()):
            if until_us is None:
                self._paused[key] = now_us + _PAUSED_US
            elif until_us <= now_us:
                self.finish(key, at_us=now_us)

    def restore(self, documents: Iterable[UncreatedPodsSegment], *, at_us: int) -> None:
        """See `StatePart.restore`: what the earlier process charged last is paused, without the feature for ever.

        Those beyond the limit end: after a second restart, pauses of two processes may be more.
        """
        kept = NamespaceLimit(self.document_limit, lambda _, key: self.finish(key, at_us=at_us))
        for each in documents:
            begun = replace(each, from_us=min(each.from_us, at_us))
            end_us = at_us if each.to_us is None else min(each.to_us, at_us)
            self._put(each, replace(begun, to_us=max(begun.from_us, end_us)), at_us=at_us)
            self._paused[each.key] = None
            if not self._is_on or not kept.put(each.namespace, each.key):
                self.finish(each.key, at_us=at_us)

    def post(self) -> None:
        """Add what was charged since the last call to the counters."""
        families = {"time": Total.UNCREATED, "cost": Total.UNCREATED_COST, "unpriced": Total.UNCREATED_UNPRICED}
        post_priced(self._totals, self._lines, **families)
        for labels, _, a, b, at_us in self._at_least.drain():
            self._totals.shift(Total.UNCREATED_AT_LEAST, labels, a, b, at_us=at_us)

    def drain_rows(self) -> dict[RowKey, UncreatedPodsSegment | None]:
        """Waits that began, ended or changed since the last call; None for withdrawn ones."""
        rows, self._rows = self._rows, {}
        return rows

    def _begin(self, wait: UncreatedPodsSegment, from_us: int, *, at_us: int) -> None:
        self._put(None, replace(wait, from_us=from_us, to_us=None), at_us=at_us)

    def _put(self, before: UncreatedPodsSegment | None, after: UncreatedPodsSegment, *, at_us: int) -> None:
        """Replace a wait by another one, and correct the counters by the difference; one without time is withdrawn."""
        for sign, each in ((-1, before), (1, after)):
            if each:
                self._add(each, sign * each.whole, at_us=at_us)
        if before:
            self._rows[before.namespace, before.uid, before.from_us] = None
        is_empty = after.to_us == after.from_us
        self._rows[after.namespace, after.uid, after.from_us] = None if is_empty else after
        self._store(after.key, after)

    def _add(self, wait: UncreatedPodsSegment, rate: int, *, at_us: int) -> None:
        span = wait.from_us, wait.to_us
        self._lines.add(wait.labels, wait.price, rate, span, at_us=at_us)
        if wait.is_at_least:
            self._at_least.add(wait.labels, None, rate, span, at_us=at_us)
