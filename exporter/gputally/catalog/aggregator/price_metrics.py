"""The active price book, and whether it matches the cluster."""

from collections.abc import Iterator

from gputally.accounting.fleet.snapshot import Snapshot
from gputally.accounting.terms.tier import NO_TIER
from gputally.catalog.metric import Metric, MetricType, Row


def price_book_info(snapshot: Snapshot) -> Iterator[Row]:
    """No row without a price book."""
    if book := snapshot.book:
        yield Row((book.name, book.digest[:12], book.currency, book.basis.value, book.source, book.as_of), 1)


def tiers_unmatched(snapshot: Snapshot) -> Iterator[Row]:
    """No row without a price book."""
    if book := snapshot.book:
        yield Row((), len({tier for tier, _ in book.tiers} - {*snapshot.tiers, NO_TIER}))


PRICE_BOOK_INFO = Metric[Snapshot](
    name="gputally_price_book_info",
    kind=MetricType.INFO,
    help="The active price book, and whether its prices cover the whole node or only the GPU.",
    labels=("name", "digest", "currency", "basis", "source", "as_of"),
    rows=price_book_info,
)

PRICE_TIERS_UNMATCHED = Metric[Snapshot](
    name="gputally_price_tiers_unmatched",
    kind=MetricType.GAUGE,
    help="Tiers with a multiplier in the price book that match no rule, PriorityClass or pod: check their spelling.",
    rows=tiers_unmatched,
    reference_only=True,
)

METRICS = (PRICE_BOOK_INFO, PRICE_TIERS_UNMATCHED)
