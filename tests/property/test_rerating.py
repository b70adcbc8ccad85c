"""Over random clusters, another price book for the past says what a naive reference says, second by second."""

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.prices.book import PriceBook
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import CapacityRecord, SegmentRecord, Window
from gputally.model.price import Asset
from gputally.model.units import US_PER_SECOND
from gputally.reports.bill import bill_of
from gputally.reports.cells import read_cells
from gputally.reports.choices import COLUMNS
from gputally.reports.price_comparison import PriceComparison, compare_prices
from gputally.reports.query import ReportQuery
from gputally.reports.rerating import Books, read_rated
from tests.core.manifests import us
from tests.property.examples import examples
from tests.property.node_lives import HORIZON, OPENED
from tests.property.price_lists import book_of, price_lists
from tests.property.strategies import Cluster, clusters
from tests.property.test_explanation import ledger_of
from tests.told import Prices

WINDOWS = st.lists(st.integers(OPENED, HORIZON), min_size=2, max_size=2, unique=True).map(
    lambda ends: Window(us(min(ends)), us(max(ends)))
)
BOOKS = st.builds(Books, st.none() | price_lists().map(book_of), price_lists().map(book_of))
TIMES = ("hour", "day", "week", "month", "hour_of_day", "weekday")
BY = st.lists(st.sampled_from([each for each in COLUMNS if each not in ("purchase", "day")]), max_size=3, unique=True)


def compared(reader: LedgerReader, query: ReportQuery, books: Books) -> PriceComparison:
    return compare_prices(read_rated(reader, query, books), currency=books.after.currency)


@given(clusters(outages=True), price_lists(), BY, WINDOWS, st.data())
@examples(40)
def test_by_the_book_of_the_ledger_the_past_costs_what_was_recorded(
    cluster: Cluster, prices: Prices, by: list[str], window: Window, data: st.DataObject
) -> None:
    times = [each for each in by if each in TIMES]
    query = ReportQuery(window=window, by=tuple(each for each in by if each not in times[1:]))
    with ledger_of(cluster, prices, data) as reader:
        found = compared(reader, query, Books(None, book_of(prices)))
        bill = bill_of(*read_cells(reader, query))

    for line in found.lines:
        assert (line.before, line.unpriced_before) == (line.after, line.unpriced_after)
        assert (line.difference, line.newly_priced, line.no_longer_priced) == (0, 0, 0)
    recorded = {line.labels: (line.gpu_time, line.unpriced, line.cost) for line in bill.lines}
    assert {line.labels: (line.gpu_time, line.unpriced_before, line.before) for line in found.lines} == recorded


@given(clusters(outages=True), price_lists(), BOOKS, WINDOWS, st.data())
@examples(40)
def test_another_book_costs_what_a_naive_reference_says(
    cluster: Cluster, prices: Prices, books: Books, window: Window, data: st.DataObject
) -> None:
    with ledger_of(cluster, prices, data) as reader:
        found = compared(reader, ReportQuery(window=window, by=("tenant", "tier")), books)
        expected = Naive(reader, window).costs(books.before, books.after)

    costs = {line.labels: [line.gpu_time, line.before, line.after, line.unpriced_after] for line in found.lines}
    assert costs == expected
    assert sum(line.difference for line in found.lines) == sum(line.difference for line in found.totals)


class Naive:
    """Rates every second of every segment by the node that the pod was on then."""

    def __init__(self, reader: LedgerReader, window: Window) -> None:
        self.segments = list(reader.segments(window))
        self.records = list(reader.capacity(Window(0, window.end_us)))

    def costs(self, before: PriceBook | None, after: PriceBook) -> dict[tuple[str, ...], list[int]]:
        """GPU-time, costs before and after, and the time that is unpriced after, by tenant and tier."""
        found: dict[tuple[str, ...], list[int]] = {}
        for each in self.segments:
            segment = each.segment
            sums = found.setdefault((segment.tenant, segment.tier), [0, 0, 0, 0])
            for at_us in range(segment.start_us, segment.end_us or 0, US_PER_SECOND):
                time, asset = US_PER_SECOND * segment.quantity, self.asset(each, at_us)
                old = before.price_of(asset, tier=segment.tier, at_us=at_us) if before else segment.price
                new = after.price_of(asset, tier=segment.tier, at_us=at_us)
                sums[0] += time
                sums[1] += old.cost(time) if old else 0
                sums[2] += new.cost(time) if new else 0
                sums[3] += 0 if new else time
        return found

    def asset(self, of: SegmentRecord, at_us: int) -> Asset:
        """That of the pod's node, or of the one that continues it by then; the nearest one if it was not there."""
        uid, known = of.node_uid, list[CapacityRecord]()
        while uid:
            known += [each for each in self.records if each.node_uid == uid]
            uid = next((e.node_uid for e in self.records if e.continues == uid and e.start_us <= at_us), "")
        if not known:
            return Asset(gpu_model=of.segment.gpu_model, pool=of.segment.pool)
        current = [each for each in known if each.start_us <= at_us]
        return (max(current, key=_start_us) if current else min(known, key=_start_us)).asset


def _start_us(record: CapacityRecord) -> int:
    return record.start_us
