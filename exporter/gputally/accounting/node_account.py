"""The running account of one node: which states its capacity was in, kept in step with late corrections."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from gputally.accounting.capacity import AdmitCapacity, CapacityPriceOf, Holding, pieces_of
from gputally.accounting.totals import Total, Totals
from gputally.model.allocation import Segment
from gputally.model.node import CapacityPiece, CapacityState, NodeRecord
from gputally.model.units import US_PER_HOUR

_WINDOW = 64
"""Pieces kept open to correction before the older ones are settled."""
_SETTLE_US = 6 * US_PER_HOUR
"""How long a piece stays open to correction, unless there are too many."""
_MOST = 512
"""Pieces of a node with many short pods: beyond this the older half is settled, so that an event stays cheap."""


class NodeAccount:
    """Capacity of one node incarnation, posted to the totals from `since_us` on.

    Time before `settled_us` is final: later knowledge about it moves time between allocated and free,
    so that the partition still adds up.
    """

    def __init__(self, record: NodeRecord, totals: Totals, *, since_us: int) -> None:
        self.record = record
        self.settled_us = since_us
        self.holdings: dict[tuple[str, str], tuple[Holding, ...]] = {}
        self.pieces: frozenset[CapacityPiece] = frozenset()
        self._physical: tuple[Holding, ...] = ()
        self._totals = totals

    def hold(self, pod_uid: str, before: Iterable[Segment], after: Iterable[Segment], *, at_us: int) -> bool:
        """Replace what a pod held by what it is now known to have held; False when that is the same."""
        old, new = _holdings(before), _holdings(after)
        for resource in old.keys() | new.keys():
            was, now = old.get(resource, ()), new.get(resource, ())
            correction = self._settled_time(now) - self._settled_time(was)
            if correction:
                self._correct(correction, at_us=at_us)
            if now:
                self.holdings[pod_uid, resource] = now
            else:
                self.holdings.pop((pod_uid, resource), None)
        return old != new

    def rebuild(
        self, *, at_us: int, price_of: CapacityPriceOf, price_changes: tuple[int, ...], admit: AdmitCapacity
    ) -> None:
        """Derive the pieces anew after any change, and let the totals follow."""
        parts = [part for parts in self.holdings.values() for part in parts]
        pieces = frozenset(
            pieces_of(
                self.record,
                parts,
                since_us=self.settled_us,
                price_of=price_of,
                price_changes=price_changes,
                admit=admit,
            )
        )
        self._post(self.pieces - pieces, sign=-1, at_us=at_us)
        self._post(pieces - self.pieces, sign=1, at_us=at_us)
        self.pieces = pieces
        self._post_physical(at_us=at_us)
        if len(pieces) > _MOST:
            self._settle(sorted(piece.start_us for piece in pieces)[len(pieces) // 2])
        elif len(pieces) > _WINDOW:
            self._settle(at_us - _SETTLE_US)

    def _post(self, pieces: Iterable[CapacityPiece], *, sign: int, at_us: int) -> None:
        for piece in pieces:
            span = (piece.start_us, piece.end_us)
            rate = sign * piece.quantity
            self._totals.accrue(Total.CAPACITY, piece.labels, rate, span, at_us=at_us)
            if piece.price:
                labels = (*piece.labels, piece.price.currency)
                self._totals.accrue(Total.CAPACITY_COST, labels, rate * piece.price.rate, span, at_us=at_us)

    def _post_physical(self, *, at_us: int) -> None:
        """The physical GPUs from the log of facts alone, which the pieces must add up to."""
        spans = tuple(_physical(self.record, self.settled_us))
        if spans == self._physical:
            return
        for sign, parts in ((-1, self._physical), (1, spans)):
            for start_us, end_us, quantity in parts:
                self._totals.accrue(Total.PHYSICAL, (), sign * quantity, (start_us, end_us), at_us=at_us)
        self._physical = spans

    def _settle(self, until_us: int) -> None:
        """Make all before `until_us` final: drop what ended by then, in pieces and holdings alike."""
        gone_us = self.record.gone_us
        until_us = until_us if gone_us is None else min(until_us, gone_us)
        if until_us <= self.settled_us:
            return
        self.settled_us = until_us
        self._physical = tuple(_physical(self.record, until_us))
        outdated = sum(1 for from_us, _ in self.record.facts if from_us <= until_us) - 1
        self.record = replace(self.record, facts=self.record.facts[max(outdated, 0) :])
        lasting = (piece for piece in self.pieces if piece.end_us is None or piece.end_us > until_us)
        self.pieces = frozenset(replace(piece, start_us=max(piece.start_us, until_us)) for piece in lasting)
        self.holdings = {key: parts for key, parts in self.holdings.items() if _reaches(parts, until_us)}

    def _settled_time(self, parts: Iterable[Holding]) -> int:
        """GPU-time of `parts` inside the settled time."""
        spans = (
            (max(start, self._totals.opened_us), min(end or self.settled_us, self.settled_us), quantity)
            for start, end, quantity in parts
        )
        return sum(max(0, end - start) * quantity for start, end, quantity in spans)

    def _correct(self, gpu_time: int, *, at_us: int) -> None:
        """What was allocated more than known was free before, or never there, and the other way round."""
        piece = next(iter(self.pieces), None)
        gpu_model, pool = piece.labels[:2] if piece else ("unknown", "none")
        real = self.record.facts[-1][1].physical
        other = (CapacityState.FREE, -gpu_time) if real else (CapacityState.OVERCOMMITTED, gpu_time)
        for state, amount in ((CapacityState.ALLOCATED, gpu_time), other):
            labels = (gpu_model, pool, state.value)
            self._totals.count(Total.CAPACITY, labels, amount, at_us=at_us)
            if piece and piece.price:
                cost = amount * piece.price.rate
                self._totals.count(Total.CAPACITY_COST, (*labels, piece.price.currency), cost, at_us=at_us)


def _physical(record: NodeRecord, since_us: int) -> Iterator[Holding]:
    """Spans of constant physical GPUs between `since_us` and the node's end."""
    ends = [from_us for from_us, _ in record.facts[1:]] + [record.gone_us]
    for (from_us, facts), end_us in zip(record.facts, ends, strict=True):
        start_us = max(from_us, since_us)
        if end_us is None or start_us < end_us:
            yield start_us, end_us, facts.physical


def _holdings(segments: Iterable[Segment]) -> dict[str, tuple[Holding, ...]]:
    """The spans of a pod's segments by resource; neighbours of one quantity are one span."""
    found: dict[str, list[Holding]] = {}
    for segment in segments:
        spans = found.setdefault(segment.resource, [])
        if spans and spans[-1][1] == segment.start_us and spans[-1][2] == segment.quantity:
            spans[-1] = (spans[-1][0], segment.end_us, segment.quantity)
        else:
            spans.append((segment.start_us, segment.end_us, segment.quantity))
    return {resource: tuple(spans) for resource, spans in found.items()}


def _reaches(parts: Iterable[Holding], until_us: int) -> bool:
    return any(end is None or end > until_us for _, end, _ in parts)
