"""The price book as the fleet asks it, with the instants up to now at which prices changed."""

from gputally.accounting.price_book import PriceBook
from gputally.model.price import Asset, Price


class Pricing:
    """Prices at instants. Without a book everything is unpriced."""

    def __init__(self, book: PriceBook | None, *, now_us: int) -> None:
        self.book = book
        self._all = book.changes() if book else ()
        self.changes: tuple[int, ...] = ()
        self.label_keys: frozenset[str] = book.label_keys() if book else frozenset()
        self.advance(now_us)

    def advance(self, now_us: int) -> bool:
        """Let time pass; True when a price may have changed since the last call."""
        changes = tuple(instant for instant in self._all if instant <= now_us)
        changed, self.changes = changes != self.changes, changes
        return changed

    def of_allocation(self, asset: Asset, tier: str, at_us: int) -> Price | None:
        """The price of one GPU-hour of what a pod of `tier` has."""
        return self.book.price_of(asset, tier=tier, at_us=at_us) if self.book else None

    def of_capacity(self, asset: Asset, at_us: int) -> Price | None:
        """The price of one GPU-hour of what a node offers, whoever has it."""
        return self.book.price_of(asset, tier=None, at_us=at_us) if self.book else None
