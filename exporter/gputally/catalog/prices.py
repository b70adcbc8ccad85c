"""Which price book is in force."""

from collections.abc import Iterator

from gputally.accounting.snapshot import Snapshot
from gputally.catalog.metric import Kind, Metric, Row


def price_book_info(snapshot: Snapshot) -> Iterator[Row]:
    """No row without a price book."""
    if book := snapshot.book:
        yield Row((book.name, book.digest[:12], book.currency, book.basis.value, book.source, book.as_of), 1)


PRICE_BOOK_INFO = Metric[Snapshot](
    name="gputally_price_book_info",
    kind=Kind.INFO,
    help="The price book in force, and what its prices include: the whole node, or the GPU alone.",
    labels=("name", "digest", "currency", "basis", "source", "as_of"),
    rows=price_book_info,
)

METRICS = (PRICE_BOOK_INFO,)
