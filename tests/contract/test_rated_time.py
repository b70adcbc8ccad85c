"""Another price book for the past, also where the retention left only sums by day, on all back-ends."""

from decimal import Decimal
from fractions import Fraction

import pytest
from msgspec.structs import replace

from gputally.accounting.prices.book import ALWAYS, Criterion, DatedPrice, PriceBook, PriceRule, Trait
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.model.price import Basis, Purchase
from gputally.model.units import COST_UNIT, GPU_HOUR, US_PER_DAY
from gputally.reports.price_comparison import PriceComparison, compare_prices
from gputally.reports.query import ReportQuery
from gputally.reports.rerating import Books, read_rated
from tests.contract.records import ASSET, FACTS, OPENED_S, pod, segment, step, us
from tests.contract.test_unallocated import HOUR, TWO, node

DAY = 24
IN_B = replace(FACTS, pool="b", asset=replace(ASSET, pool="b"))


def book(*pools: tuple[str, str], cheaper_hour: int | None = None) -> PriceBook:
    """A price for each pool, which is 1 less from some hour on."""
    rules = [
        PriceRule(
            id=pool,
            criteria=(Criterion(trait=Trait.POOL, globs=(pool,)),),
            prices=(DatedPrice(from_us=ALWAYS, per_gpu_hour=Decimal(rate)),)
            + ((DatedPrice(from_us=us(cheaper_hour * HOUR), per_gpu_hour=Decimal(rate) - 1),) if cheaper_hour else ()),
        )
        for pool, rate in pools
    ]
    return PriceBook(currency=TWO.currency, basis=Basis.NODE, rules=tuple(rules), digest="d")


def written(ledger: Ledger) -> None:
    """A pod of the hours 30 to 90 on a node that changes its pool in hour 60."""
    ledger.write(node("node-1", (5, FACTS), (60, IN_B)))
    end = us(90 * HOUR)
    ledger.write(step(pod("a", segment(30 * HOUR, 90 * HOUR, price=TWO), end_us=end, gap=None), at=100 * HOUR))


def rolled_up(ledger: Ledger) -> None:
    """The same, of which only sums by day are left."""
    written(ledger)
    assert [*ledger.roll_up(5 * US_PER_DAY)][-1] == 1


def compared(reader: LedgerReader, after: PriceBook) -> PriceComparison:
    query = ReportQuery(window=Window(us(OPENED_S), us(100 * HOUR)), by=("day",))
    return compare_prices(read_rated(reader, query, Books(None, after)), currency=after.currency)


def by_day(found: PriceComparison) -> dict[str, tuple[object, ...]]:
    """Cost before and after, and estimated GPU-hours."""
    return {
        line.labels[0]: (
            Fraction(line.before, COST_UNIT),
            Fraction(line.after, COST_UNIT),
            Fraction(line.estimated, GPU_HOUR),
        )
        for line in found.lines
    }


def test_changes_of_nodes_and_prices_count_from_their_time_on(ledger: Ledger, reader: LedgerReader) -> None:
    written(ledger)

    found = compared(reader, book(("a", "3"), ("b", "5"), cheaper_hour=70))
    assert by_day(found) == {
        "1970-01-02": (2 * 18, 3 * 18, 0),
        "1970-01-03": (2 * 24, 3 * 12 + 5 * 10 + 4 * 2, 0),
        "1970-01-04": (2 * 18, 4 * 18, 0),
    }


def test_only_changes_of_nodes_that_change_a_price_divide_the_time(ledger: Ledger, reader: LedgerReader) -> None:
    written(ledger)
    query = ReportQuery(window=Window(us(OPENED_S), us(100 * HOUR)), by=())

    assert len(list(read_rated(reader, query, Books(None, book(("*", "3")))))) == 1
    assert len(list(read_rated(reader, query, Books(None, book(("a", "3")))))) == 2
    assert len(list(read_rated(reader, query, Books(book(("b", "5")), book(("*", "3")))))) == 2


def test_time_without_a_recorded_price_has_the_purchase_option_of_its_node(
    ledger: Ledger, reader: LedgerReader
) -> None:
    on_demand = replace(FACTS, asset=replace(ASSET, purchase=Purchase.ON_DEMAND))
    ledger.write(node("node-1", (5, FACTS), (60, on_demand)))
    ledger.write(step(pod("a", segment(50 * HOUR, 90 * HOUR, price=None)), at=100 * HOUR))
    query = ReportQuery(window=Window(us(OPENED_S), us(100 * HOUR)), by=("purchase",))

    found = list(read_rated(reader, query, Books(None, book(("*", "3")))))
    assert {each.labels: each.gpu_time // GPU_HOUR for each in found} == {("spot",): 10, ("on-demand",): 30}


def test_a_day_in_which_a_node_changed_is_rated_by_its_start_and_says_so(ledger: Ledger, reader: LedgerReader) -> None:
    rolled_up(ledger)

    found = compared(reader, book(("a", "3"), ("b", "5")))
    assert by_day(found) == {
        "1970-01-02": (2 * 18, 3 * 18, 0),
        "1970-01-03": (2 * 24, 3 * 24, 24),
        "1970-01-04": (2 * 18, 5 * 18, 0),
    }
    assert found.changed_days == 24 * GPU_HOUR


def test_a_change_without_an_effect_is_no_reason_for_doubt(ledger: Ledger, reader: LedgerReader) -> None:
    rolled_up(ledger)

    assert compared(reader, book(("*", "3"))).changed_days == 0


@pytest.mark.parametrize(("hour", "after", "estimated"), [(48, 24 * 3 - 24, 0), (50, 24 * 3, 24)])
def test_a_price_that_changes_at_midnight_divides_nothing(
    ledger: Ledger, reader: LedgerReader, hour: int, after: int, estimated: int
) -> None:
    rolled_up(ledger)

    found = by_day(compared(reader, book(("*", "3"), cheaper_hour=hour)))
    assert found["1970-01-02"] == (2 * 18, 3 * 18, 0)
    assert found["1970-01-03"] == (2 * 24, after, estimated)
    assert found["1970-01-04"] == (2 * 18, 2 * 18, 0)
