"""The price book as the fleet asks it, with the instants up to now at which prices changed."""

from bisect import bisect_right
from collections.abc import Sequence

from gputally.accounting.price_book import PriceBook
from gputally.accounting.segments import PriceOf
from gputally.model.allocation import Segment
from gputally.model.price import Asset, Price


class Pricing:
    """Prices at instants, of a book loaded at `now_us`. Without a book everything is unpriced."""

    def __init__(self, book: PriceBook | None, *, now_us: int) -> None:
        self.book = book
        self._loaded_us = now_us
        self._of_book = book.changes() if book else ()
        self._all = tuple(sorted({now_us, *self._of_book}))
        self.changes: tuple[int, ...] = ()
        self._cuts: tuple[int, ...] = ()
        self.label_keys: frozenset[str] = book.label_keys() if book else frozenset()
        self.advance(now_us)

    def advance(self, now_us: int) -> bool:
        """Let time pass; True when a price may have changed since the last call."""
        passed = bisect_right(self._all, now_us)
        if passed == len(self.changes):
            return False
        self.changes = self._all[:passed]
        self._cuts = self._of_book[: bisect_right(self._of_book, now_us)]
        return True

    def of_allocation(self, asset: Asset, tier: str, at_us: int) -> Price | None:
        """The price of one GPU-hour of what a pod of `tier` has."""
        return self.book.price_of(asset, tier=tier, at_us=at_us) if self.book else None

    def keeping(self, posted: Sequence[Segment]) -> PriceOf:
        """Prices of an allocation that was posted so before: a new book counts from its load on, not for the past."""
        if not self._predates(posted):
            return self.of_allocation

        def price_of(asset: Asset, tier: str, at_us: int) -> Price | None:
            known = self._known(posted, asset, tier, at_us)
            return known.price if known else self.of_allocation(asset, tier, at_us)

        return price_of

    def cuts(self, posted: Sequence[Segment]) -> tuple[int, ...]:
        """The instants up to now at which the price of such an allocation may have changed."""
        if not self._predates(posted):
            return self._cuts
        return (*self.changes, *(s.start_us for s in posted if s.start_us < self._loaded_us))

    def _predates(self, posted: Sequence[Segment]) -> bool:
        """Whether any of it was priced by an earlier book."""
        return bool(posted) and posted[0].start_us < self._loaded_us

    def _known(self, posted: Sequence[Segment], asset: Asset, tier: str, at_us: int) -> Segment | None:
        if at_us >= self._loaded_us:
            return None
        terms = (tier, asset.gpu_model, asset.pool)
        return next((s for s in posted if _covers(s, at_us) and (s.tier, s.gpu_model, s.pool) == terms), None)

    def of_capacity(self, asset: Asset, at_us: int) -> Price | None:
        """The price of one GPU-hour of what a node offers, whoever has it."""
        return self.book.price_of(asset, tier=None, at_us=at_us) if self.book else None


def _covers(segment: Segment, at_us: int) -> bool:
    return segment.start_us <= at_us and (segment.end_us is None or at_us < segment.end_us)
