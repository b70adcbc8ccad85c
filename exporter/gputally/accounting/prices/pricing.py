"""Prices of allocations and of capacity over time, with the instants up to now at which they changed.

Late facts may correct which asset a node was, but not what an asset cost: a new price book applies from its load on.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from gputally.accounting.facts.allocation import Prices, terms_at
from gputally.accounting.prices.book import PriceBook
from gputally.model.allocation import Segment, Terms
from gputally.model.node_record import NodeFacts
from gputally.model.pod_record import PodRecord
from gputally.model.price import Asset, Price


class Pricing:
    """Prices by time, from a book loaded at `now_us`. Without a book, everything is unpriced.

    `now_us` advances. At `next_us`, prices change next, and `advance` is due.
    """

    def __init__(self, book: PriceBook | None, *, now_us: int) -> None:
        self.book = book
        self.loaded_us = now_us
        self._all = tuple(sorted({now_us, *(book.changes() if book else ())}))
        self.now_us = now_us
        self.next_us: int | None = None
        self.changes: tuple[int, ...] = ()
        self.label_keys: frozenset[str] = book.label_keys() if book else frozenset()
        self.advance()

    def advance(self) -> int:
        """Advance the time; returns the first instant since the last call at which a price may have changed."""
        before, passed = len(self.changes), bisect_right(self._all, self.now_us)
        self.changes = self._all[:passed]
        self.next_us = self._all[passed] if passed < len(self._all) else None
        return self._all[before]

    def of_allocation(self, terms: Terms, from_us: int, until_us: int | None) -> list[tuple[int, Price | None]]:
        """The price of one GPU-hour under `terms`, with its changes until `until_us`, or up to now."""
        if self.book is None:
            return [(from_us, None)]
        until_us = self.now_us + 1 if until_us is None else min(until_us, self.now_us + 1)
        return self.book.steps(terms.asset, tier=terms.tier, from_us=from_us, until_us=until_us)

    def has_new_price(self, record: PodRecord, since_us: int) -> bool:
        """Whether the allocation of `record` has another price than was posted, from `since_us` on."""
        if not record.segments:
            return False
        last = record.segments[-1]
        if last.end_us is not None or last.start_us > since_us:
            return (last.end_us or last.start_us) > since_us  # posted under a later time
        return any(price != last.price for _, price in self.of_allocation(record.terms[-1], since_us, None))

    def keeping(self, before: PodRecord | None) -> Prices:
        """Prices of an allocation, last accounted as `before`: a new book applies from its load on, not to the past.

        What was posted as another asset or tier, by facts that were outdated, has no price to keep.
        """
        posted = before.segments if before else ()
        if not before or not posted or posted[0].start_us >= self.loaded_us:
            return self.of_allocation

        def prices(terms: Terms, from_us: int, until_us: int | None) -> Iterator[tuple[int, Price | None]]:
            steps = dict(self.of_allocation(terms, from_us, until_us))
            for at_us in sorted({*steps, *_posted_in(posted, from_us, until_us, kept_us=self.loaded_us)}):
                known = self._posted_for(before, terms, at_us) if at_us < self.loaded_us else None
                yield at_us, known.price if known else self._at(terms, at_us)

        return prices

    def _posted_for(self, before: PodRecord, terms: Terms, at_us: int) -> Segment | None:
        """The segment that was posted for `at_us` under an earlier book, if asset and tier are still the same."""
        index = bisect_right(before.segments, at_us, key=_start_us) - 1
        if index < 0:
            return None
        found, was = before.segments[index], terms_at(before, at_us)
        covers = found.end_us is None or at_us < found.end_us
        alike = was.tier == terms.tier and self._as_read(was.asset) == self._as_read(terms.asset)
        return found if covers and alike else None

    def _as_read(self, asset: Asset) -> Asset:
        """The asset without labels that only an earlier book read."""
        if not asset.labels:
            return asset
        return replace(asset, labels=tuple(label for label in asset.labels if label[0] in self.label_keys))

    def _at(self, terms: Terms, at_us: int) -> Price | None:
        return self.book.price_of(terms.asset, tier=terms.tier, at_us=at_us) if self.book else None

    def of_capacity(self, asset: Asset, at_us: int) -> Price | None:
        """The price of one GPU-hour of a node's capacity, in any state."""
        return self.book.price_of(asset, tier=None, at_us=at_us) if self.book else None


def _start_us(segment: Segment) -> int:
    return segment.start_us


def _posted_in(posted: Sequence[Segment], from_us: int, until_us: int | None, *, kept_us: int) -> Iterator[int]:
    """The instants in the span at which posted prices may change: segment starts, and the end of the kept time."""
    last_us = kept_us + 1 if until_us is None else min(until_us, kept_us + 1)
    first = bisect_right(posted, from_us, key=_start_us)
    for index in range(first, bisect_left(posted, last_us, key=_start_us)):
        yield posted[index].start_us
    if from_us < kept_us < last_us:
        yield kept_us


class AssetPrices:
    """Collects new prices of all assets that were ever seen, from `since_us` on."""

    def __init__(self, pricing: Pricing, *, since_us: int) -> None:
        self.since_us = since_us
        self._pricing = pricing
        self._seen: dict[Asset, int] = {}
        """How many changes of the pricing are drained."""

    def see(self, facts: Iterable[tuple[int, NodeFacts]]) -> None:
        """Nodes have these assets."""
        for _, each in facts:
            self._seen.setdefault(each.asset, -1)

    def drain(self) -> dict[tuple[Asset, int], Price | None]:
        """The prices of a GPU-hour since the last call, by asset and time."""
        changes, found = self._pricing.changes, dict[tuple[Asset, int], Price | None]()
        for asset, drained in self._seen.items():
            if drained < len(changes):
                first = bisect_right(changes, self.since_us)
                instants = (self.since_us, *changes[first:]) if drained < 0 else changes[max(first, drained) :]
                found |= {(asset, at_us): self._pricing.of_capacity(asset, at_us) for at_us in instants}
        self._seen = dict.fromkeys(self._seen, len(changes)) if found else self._seen
        return found
