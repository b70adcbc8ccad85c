"""Which node labels the ledger stored: those that the price book of the time named."""

from collections.abc import Iterable
from functools import lru_cache

from gputally.accounting.prices.price_book import PriceBook
from gputally.accounting.prices.price_key import DIGEST_PREFIX, PriceKey
from gputally.ledger.records import CapacityRecord
from gputally.model.price import Asset, Price


class StoredLabels:
    """Label keys with the time in which the ledger stored them, by the nodes that had them.

    If no node had a label at a time, it is not known whether it was stored, unless a price of the same book was
    recorded.
    """

    def __init__(self, records: Iterable[CapacityRecord]) -> None:
        self._spans: dict[str, tuple[int, int]] = {}
        for each in records:
            for key, _ in each.asset.labels:
                start_us, end_us = self._spans.get(key, (each.start_us, each.end_us))
                self._spans[key] = min(start_us, each.start_us), max(end_us, each.end_us)

    def changes(self) -> set[int]:
        """The instants (µs) at which it changes what is known."""
        return {at_us for span in self._spans.values() for at_us in span}

    def undecided(self, book: PriceBook, asset: Asset, *, recorded: Price | None, at_us: int) -> frozenset[str]:
        """The label keys on which the book's price of the asset depends, and that may not have been stored."""
        if not book.label_keys() or (recorded and _is_of(recorded.key, book.digest)):
            return frozenset()
        unknown = frozenset(key for key in book.label_keys() if not self._had(key, at_us))
        return _undecided(book, asset, at_us, unknown) if unknown else unknown

    def _had(self, key: str, at_us: int) -> bool:
        start_us, end_us = self._spans.get(key, (0, 0))
        return start_us <= at_us < end_us


@lru_cache(maxsize=16_384)
def _undecided(book: PriceBook, asset: Asset, at_us: int, unknown: frozenset[str]) -> frozenset[str]:
    return book.undecided(asset, at_us=at_us, unknown=unknown)


@lru_cache(maxsize=16_384)
def _is_of(key: str, digest: str) -> bool:
    """Whether the price with this key is one of the book with this digest."""
    found = PriceKey.parse(key)
    return found is not None and found.book == digest[:DIGEST_PREFIX]
