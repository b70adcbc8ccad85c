"""Allocated time with two prices: that of the ledger or of one price book, and that of another book."""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.prices.book import ALWAYS, DIGEST_PREFIX, PriceBook, PriceKey
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import AllocatedTime, CapacityRecord
from gputally.model.price import Asset, Price, Purchase
from gputally.model.units import US_PER_DAY
from gputally.reports.capacity import UNOBSERVED, NodeAsset, NodeAssets, read_node_assets
from gputally.reports.cells import read_columns, stored_names
from gputally.reports.query import ReportQuery

_RATED_BY: Final = ("tier", "node_uid", "gpu_model", "pool")
"""What a price depends on, and what replaces a node that was never observed."""
_NO_TIER: Final = ""
_NEVER: Final = 2**62
"""Later (µs) than any price begins."""


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


class Books(NamedTuple):
    """The prices to compare: `before` is None for those that the ledger recorded.

    Afterwards, spot nodes are paid as those of the purchase option `instead_of_spot`, if it is given.
    """

    before: PriceBook | None
    after: PriceBook
    instead_of_spot: Purchase | None = None

    def bought(self, asset: Asset) -> Asset:
        """The asset as it is paid afterwards."""
        if self.instead_of_spot and asset.purchase is Purchase.SPOT:
            return replace(asset, purchase=self.instead_of_spot)
        return asset

    def changes(self) -> set[int]:
        """The instants (µs) at which a price of any book changes."""
        return {*self.after.changes(), *(self.before.changes() if self.before else ())}

    def rates(self, asset: Asset) -> Hashable:
        """Equal for assets with the same purchase option and, in any tier, the same prices at all times.

        Few changes of nodes change these, so that time needs few cuts.
        """
        before = _prices(self.before, asset) if self.before else ()
        return asset.purchase, before, _prices(self.after, self.bought(asset))


class RatedTime(Struct, frozen=True, kw_only=True, gc=False):
    """Allocated time (µs·µGPU) of a line, with its prices before and after, None if unpriced.

    `is_guessed` if its node was never observed, so that it is rated by its GPU model, pool and purchase option.
    Otherwise, `unknown_keys` are node labels that its prices depend on, and that the ledger may not have stored.
    `is_of_changed_day` if only the sum of its day is left, in which a price changed: it is rated by the day's start.
    """

    labels: tuple[str, ...]
    gpu_time: int
    before: Price | None
    after: Price | None
    is_guessed: bool
    unknown_keys: frozenset[str]
    is_of_changed_day: bool

    @property
    def is_estimated(self) -> bool:
        """Whether a price may be wrong for lack of facts."""
        return self.is_guessed or bool(self.unknown_keys) or self.is_of_changed_day


def read_rated(reader: LedgerReader, query: ReportQuery, books: Books) -> Iterator[RatedTime]:
    """The allocated time of the query's period at both prices. Raises: LedgerError."""
    window, periods, detail_us = query.window, query.periods, reader.state().detail_start_us or 0
    rating = _Rating(books, read_node_assets(reader, window), StoredLabels(reader.capacity(window)))
    changes = {*periods.cuts, *_outside_days(rating.changes(), detail_us)}
    cuts = tuple(sorted(at_us for at_us in changes if window.start_us < at_us < window.end_us))
    starts, ends, columns = (window.start_us, *cuts), (*cuts, window.end_us), read_columns(query, _RATED_BY)
    for time in reader.allocated(window, stored_names(columns), cuts=cuts):
        at_us, last_us = starts[time.period], ends[time.period] - 1
        values = dict(zip(columns, time.labels, strict=True))
        node, asset = rating.node(time, values, at_us)
        values["purchase"] = (time.price or asset).purchase.value
        values |= periods.values[bisect_right(periods.cuts, at_us)]
        if query.includes(values):
            before, after = rating.prices(time, values, at_us)
            yield RatedTime(
                labels=tuple(values[column] for column in query.columns),
                gpu_time=time.gpu_time,
                before=before,
                after=after,
                is_guessed=node == UNOBSERVED,
                unknown_keys=frozenset() if node == UNOBSERVED else rating.unknown_keys(time, asset, at_us),
                is_of_changed_day=last_us < detail_us and rating.prices(time, values, last_us) != (before, after),
            )


class _Rating(NamedTuple):
    """Rates time in which nothing changes."""

    books: Books
    nodes: NodeAssets
    labels: StoredLabels

    def changes(self) -> set[int]:
        """The instants (µs) at which any price may change."""
        cuts = self.nodes.cuts(lambda node: self.books.rates(node.asset))
        return {*cuts, *self.books.changes(), *self.labels.changes()}

    def node(self, time: AllocatedTime, values: Mapping[str, str], at_us: int) -> tuple[NodeAsset, Asset]:
        """The node of the allocation, and its asset, which is guessed for `UNOBSERVED`."""
        node = self.nodes.at(values["node_uid"], at_us)
        return node, _guess(values, time.price) if node == UNOBSERVED else node.asset

    def prices(self, time: AllocatedTime, values: Mapping[str, str], at_us: int) -> tuple[Price | None, Price | None]:
        """The prices to compare."""
        _, asset = self.node(time, values, at_us)
        tier, books = values["tier"], self.books
        before = books.before.price_of(asset, tier=tier, at_us=at_us) if books.before else time.price
        return before, books.after.price_of(books.bought(asset), tier=tier, at_us=at_us)

    def unknown_keys(self, time: AllocatedTime, asset: Asset, at_us: int) -> frozenset[str]:
        """The label keys on which a price depends, and that may not have been stored."""
        books = self.books
        found = self.labels.undecided(books.after, books.bought(asset), recorded=time.price, at_us=at_us)
        if books.before:
            found |= self.labels.undecided(books.before, asset, recorded=time.price, at_us=at_us)
        return found


def _outside_days(changes: Iterable[int], detail_us: int) -> Iterator[int]:
    """The changes, and instead of those before `detail_us` the start and end of their day (UTC): it is not divided."""
    for at_us in changes:
        if at_us >= detail_us:
            yield at_us
        else:
            yield at_us - at_us % US_PER_DAY
            yield at_us + -at_us % US_PER_DAY


@lru_cache(maxsize=4096)
def _prices(book: PriceBook, asset: Asset) -> Hashable:
    """All its prices without a multiplier, and the labels that they may depend on."""
    prices = tuple(book.steps(asset, tier=_NO_TIER, from_us=ALWAYS, until_us=_NEVER))
    return prices, book.undecided(asset, at_us=_NEVER, unknown=book.label_keys())


def _guess(values: Mapping[str, str], price: Price | None) -> Asset:
    """What the allocation itself says about its node."""
    purchase = price.purchase if price else Purchase.ON_DEMAND
    return Asset(gpu_model=values["gpu_model"], pool=values["pool"], purchase=purchase)
