"""Charges every pending GPU-second to exactly one cause: from the creation of a pod to its binding or deletion.

A pod is charged as it was last judged. What is learned late, such as a binding that was observed a while after it
happened, corrects the counters by the difference.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gputally.accounting.base.state_part import KeyedDocuments
from gputally.accounting.nodes.most_capacity import ALL
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Netting, Totals, post_priced
from gputally.accounting.wait_book.terms import ChargeTerms
from gputally.model.history import alike
from gputally.model.pod_record import PodRecord
from gputally.model.price import PriceRange
from gputally.model.waits import PendingHistory, PendingSegment, PendingSegmentRow

if TYPE_CHECKING:
    from gputally.model.needs import Needs

MOST_WAITS: Final = 32
"""How many of the latest waits of a pod are kept and can be corrected; the ledger has all."""
MOST_FINISHED: Final = 2000
"""How many pods that were bound last are kept, whatever became of them since: to compare others with."""


class WaitBook(KeyedDocuments[PendingHistory]):
    """The waits of pending pods, by UID. The counters have what they amount to; nothing is charged unless `is_on`.

    Without it, the waits of earlier processes are kept until their pods are bound or deleted: they must not be charged
    again when it is on.
    """

    def __init__(self, totals: Totals, terms: ChargeTerms, *, is_on: bool) -> None:
        super().__init__()
        self.finished: deque[PendingHistory] = deque(maxlen=MOST_FINISHED)
        self.sums: dict[tuple[str, str], tuple[int, int]] = {}
        """Pending pods and their µGPU by exported tier and reason."""
        self.impossible = 0
        """Pending pods that are not charged, since they ask for more than is possible."""
        self._totals = totals
        self.terms = terms
        self.is_on = is_on
        self._lines = Netting()
        self._same: dict[PendingSegment, PendingSegment] = {}
        """Waits charged since the last `post`: pods of one tenant that wait for the same share them."""
        self._rows: dict[tuple[str, int], PendingSegmentRow | None] = {}
        self.unpriced: dict[str, Needs] = {}
        """Needs, by UID, of pods whose prices are not found out yet, in order of their turn."""

    def tier_of(self, uid: str) -> str | None:
        """The exported tier of a pod that waits; None for any other."""
        known = self.known.get(uid)
        return known.waits[-1].shown[0] if known and known.waits and known.waits[-1].to_us is None else None

    def charge(self, record: PodRecord, wait: PendingSegment, *, holders: tuple[str, ...] = (), at_us: int) -> None:
        """From `at_us` on, a pending pod waits as in `wait`, whose times do not matter; the first one since it exists.

        Prices count for the time in which they were not found out yet, too. `holders` are the pods that it is charged
        to. A later change at the same instant replaces an earlier one. Nothing is charged for the time after the last
        wait has ended, in which the feature was off.
        """
        known = self.known.get(record.uid)
        waits = known.waits if known else ()
        if not wait.awaits_price:
            waits = _priced(waits, wait.prices)
        if not waits or waits[-1].to_us is not None or not waits[-1].equals_but_for_time(wait):
            waits = self._extended(record, waits, wait, at_us=at_us)
        self._keep(record, waits, holders=holders, at_us=at_us)

    def bound(self, record: PodRecord, *, at_us: int) -> None:
        """A pod was bound: its wait is over. A pod that nobody saw waiting waited for its scheduler."""
        end_us = record.scheduled_us or 0
        if record.uid in self.known or (self.is_on and end_us > self._start_us(record)):
            self.finish(record, record.terms[-1].tenant, end_us=end_us, at_us=at_us)
            if (finished := self.known[record.uid]).waits:
                self.finished.append(finished)
            self.forget(record.uid)

    def finish(self, record: PodRecord, tenant: str, *, end_us: int, at_us: int) -> None:
        """The wait of a pod ended at `end_us`; if it was never charged, all of it was for its scheduler."""
        if known := self.known.get(record.uid):
            waits = self._with_prices(record, known.waits)
        else:
            prices = self.terms.prices.on_node(record) if record.terms else PriceRange()
            waits = (replace(self.terms.wait_of(record, tenant, prices), from_us=self._start_us(record)),)
        self._keep(record, _ended(waits, end_us), at_us=at_us)

    def end(self, uid: str, *, at_us: int) -> None:
        """The wait of a pod ended at `at_us`, for a reason that is not known, or since the feature is off."""
        if known := self.known.get(uid):
            self._keep(known, _ended(known.waits, at_us), at_us=at_us)

    def forget(self, uid: str) -> None:
        """Nothing can change about the wait of this pod any more: it is bound, or deleted."""
        self._remove(uid)
        self.unpriced.pop(uid, None)

    def post(self) -> None:
        """Add what was charged since the last call to the counters."""
        families = {"time": Total.PENDING, "cost": Total.PENDING_COST, "unpriced": Total.PENDING_UNPRICED}
        post_priced(self._totals, self._lines, **families)
        self._same.clear()

    def drain_rows(self) -> dict[tuple[str, int], PendingSegmentRow | None]:
        """Waits that began, ended or changed since the last call, by pod and begin; None for withdrawn ones."""
        rows, self._rows = self._rows, {}
        return rows

    def restore(self, documents: Iterable[PendingHistory], *, at_us: int) -> None:
        """Restore the waits that an earlier process charged; times after `at_us` were by a wrong clock."""
        for each in documents:
            self.known[each.uid] = each
            self._count(each.waits, 1)
            waits = _begun_by(at_us, each.waits)
            if waits and waits[-1].quantity > self.terms.limits.of_pod(ALL):  # the configured ceiling is lower now
                waits = _ended(waits, at_us)
            self._keep(each, waits, holders=each.holders, at_us=at_us)

    def _with_prices(self, record: PodRecord, waits: tuple[PendingSegment, ...]) -> tuple[PendingSegment, ...]:
        """The waits of a pod that waits no longer, of which none awaits its price; it may be that of the pod's node."""
        needs = self.unpriced.pop(record.uid, None)
        if not any(each.awaits_price for each in waits):
            return waits
        prices = self.terms.prices_of(record, needs, is_urgent=True) if needs else None
        if prices is None:
            prices = self.terms.prices.on_node(record) if record.terms else PriceRange()
        return _priced(waits, prices)

    def _start_us(self, record: PodRecord) -> int:
        return max(record.created_us, self._totals.accounting_start_us)

    def _extended(
        self, record: PodRecord, waits: tuple[PendingSegment, ...], wait: PendingSegment, *, at_us: int
    ) -> tuple[PendingSegment, ...]:
        """The waits with another one from `at_us` on."""
        from_us = max(waits[-1].to_us or waits[-1].from_us, at_us) if waits else self._start_us(record)
        if waits:
            waits = _ended(waits, from_us)
        if waits and waits[-1].to_us == from_us and waits[-1].equals_but_for_time(wait):
            from_us, waits = waits[-1].from_us, waits[:-1]
        return *waits, replace(wait, from_us=from_us, to_us=None)

    def _count(self, waits: Iterable[PendingSegment], sign: int) -> None:
        """Add the waits that last to the sums, or take them back."""
        for each in waits:
            if each.to_us is None:
                key = each.shown[0], each.reason.value
                self.impossible += 0 if each.quantity else sign
                pods, quantity = self.sums.pop(key, (0, 0))
                if pods + sign:
                    self.sums[key] = pods + sign, quantity + sign * each.quantity

    def _keep(
        self,
        pod: PodRecord | PendingHistory,
        waits: tuple[PendingSegment, ...],
        *,
        holders: tuple[str, ...] = (),
        at_us: int,
    ) -> None:
        """Replace the waits of a pod, and correct the counters by the difference."""
        uid, known = pod.uid, self.known.get(pod.uid)
        before = known.waits if known else ()
        kept = alike(before, waits)
        if kept == len(before) == len(waits) and known and known.holders == holders:
            return
        waits = (*waits[:kept], *[self._same.setdefault(each, each) for each in waits[kept:]])
        for sign, changed in ((-1, before[kept:]), (1, waits[kept:])):
            for each in changed:
                span = each.from_us, each.to_us
                for labels, quantity in each.charges:
                    self._lines.add(labels, each.price, sign * quantity, span, at_us=at_us)
        self._count(before[kept:], -1)
        self._count(waits[kept:], 1)
        self._rows |= {(uid, each.from_us): None for each in before[kept:]}
        for each in waits[kept:]:
            self._rows[uid, each.from_us] = PendingSegmentRow(
                uid=uid, namespace=pod.namespace, name=pod.name, wait=each
            )
        latest = waits[-MOST_WAITS:]
        self._store(uid, PendingHistory(uid=uid, namespace=pod.namespace, name=pod.name, waits=latest, holders=holders))


def _priced(waits: tuple[PendingSegment, ...], prices: PriceRange) -> tuple[PendingSegment, ...]:
    """The waits, with these prices where they were not found out yet."""
    if not any(each.awaits_price for each in waits):
        return waits
    lowest, highest = prices
    return tuple(
        replace(each, price=lowest, highest=highest, awaits_price=False) if each.awaits_price else each
        for each in waits
    )


def _ended(waits: Sequence[PendingSegment], end_us: int) -> tuple[PendingSegment, ...]:
    """The waits before `end_us`, the last one until then."""
    begun = [each for each in waits if each.from_us < end_us]
    if begun and (begun[-1].to_us is None or begun[-1].to_us > end_us):
        begun[-1] = replace(begun[-1], to_us=end_us)
    return tuple(begun)


def _begun_by(at_us: int, waits: tuple[PendingSegment, ...]) -> tuple[PendingSegment, ...]:
    """The waits as of `at_us`; the last one lasts if it did."""
    if all(each.from_us <= at_us and (each.to_us or 0) <= at_us for each in waits):
        return waits
    last = replace(waits[-1], from_us=min(waits[-1].from_us, at_us))
    begun = _ended(waits, last.from_us) if last.to_us is None else ()
    return (*begun, last) if last.to_us is None else _ended(waits, at_us)
